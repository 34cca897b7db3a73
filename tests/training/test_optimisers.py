from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import clip_grad_norm_

from softtargets.exceptions import RecipeError
from softtargets.recipes import SGD, Adam, AdamW, Optimiser
from softtargets.training.optimisers import average_, clip_by_norm_, make_update

SHAPES = {"body.0.weight": (4, 3), "body.0.bias": (4,), "scale": (), "head.weight": (2, 4), "head.bias": (2,)}
NAMES = list(SHAPES)
# What patterns mean, by hand.
CHOSEN = {
    (): NAMES,
    ("head.*",): ["head.weight", "head.bias"],
    ("*.bias",): ["body.0.bias", "head.bias"],
    ("scale", "body.[01].weight"): ["scale", "body.0.weight"],
}
FACTORS = {
    (): [1, 1, 1, 1, 1],
    (("head.*", 0.1),): [1, 1, 1, 0.1, 0.1],
    (("head.bias", 2.0), ("*.bias", 0.0), ("head.*", 3.0)): [1, 0, 1, 3, 2],
    (("*", 0.5),): [0.5] * 5,
}
CLOSE = {torch.float64: {"rtol": 1e-12, "atol": 1e-13}, torch.float32: {"rtol": 1e-6, "atol": 1e-6}}


def drawn(seed, run=0, dtype=torch.float64):
    """A tensor for each name."""
    generator = torch.Generator().manual_seed(1000 * run + seed)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in SHAPES.values()
    ]


def stacked(seed, runs, dtype=torch.float64):
    """The same for several runs, which become the first dimension."""
    return [torch.stack(each) for each in zip(*(drawn(seed, run, dtype) for run in range(runs)), strict=True)]


def named(value):
    """A part, or several, as the name of a test."""
    if isinstance(value, Optimiser):
        return ",".join(str(option) for option in value.canonical().values())
    return "|".join(map(named, value)) if isinstance(value, list) else None


def rate_at(step, part):
    """Some schedule; it touches 0."""
    return part.lr * (1 + math.cos(step * math.pi / 4)) / 2


def alone(part, run=0, steps=50, dtype=torch.float64):
    """Weights and state of one net after some steps."""
    update = make_update([part], NAMES, lead=0, dtype=dtype)
    weights = drawn(1, run, dtype)
    state = update.initial(weights)
    for step in range(steps):
        rate = torch.tensor(rate_at(step, part), dtype=dtype)
        update.apply_(weights, drawn(100 + step, run, dtype), state, rate, torch.tensor(step))
    return weights, state


def together(parts, steps=50, dtype=torch.float64):
    """The same for a stack of runs."""
    update = make_update(parts, NAMES, lead=1, dtype=dtype)
    weights = stacked(1, len(parts), dtype)
    state = update.initial(weights)
    for step in range(steps):
        rates = torch.tensor([rate_at(step, part) for part in parts], dtype=dtype)
        steps_taken = torch.full((len(parts),), step)
        update.apply_(weights, stacked(100 + step, len(parts), dtype), state, rates, steps_taken)
    return weights, state


def by_torch(part, steps=50, dtype=torch.float64):
    """The same with the optimisers of torch, a group for each parameter."""
    weights = [nn.Parameter(value) for value in drawn(1, dtype=dtype)]
    groups = [
        {"params": [weight], "weight_decay": part.weight_decay if name in CHOSEN[part.decay_on] else 0.0}
        for name, weight in zip(NAMES, weights, strict=True)
    ]
    if isinstance(part, SGD):
        options = {name: getattr(part, name) for name in ("momentum", "dampening", "nesterov")}
        optimiser = torch.optim.SGD(groups, **options)
    else:
        kind = torch.optim.AdamW if part.decoupled else torch.optim.Adam
        optimiser = kind(groups, betas=part.betas, eps=part.eps)
    for step in range(steps):
        for weight, gradient in zip(weights, drawn(100 + step, dtype=dtype), strict=True):
            weight.grad = gradient
        for group, factor in zip(optimiser.param_groups, FACTORS[part.rates], strict=True):
            group["lr"] = rate_at(step, part) * factor
        optimiser.step()
    return [weight.detach() for weight in weights]


def assert_close(found, expected, dtype=torch.float64):
    for name, one, other in zip(NAMES, found, expected, strict=True):
        torch.testing.assert_close(one, other, **CLOSE[dtype], msg=lambda text, name=name: f"{name}: {text}")


EXAMPLES = [
    SGD(),
    SGD(weight_decay=0.01),
    SGD(momentum=0.9),
    SGD(momentum=0.9, dampening=0.9),
    SGD(dampening=0.5),
    SGD(momentum=0.9, dampening=0.3, weight_decay=0.01),
    SGD(momentum=0.9, nesterov=True),
    SGD(momentum=0.9, nesterov=True, weight_decay=0.01),
    *(SGD(momentum=0.9, rates=rates, weight_decay=0.1) for rates in FACTORS),
    *(SGD(momentum=0.9, decay_on=patterns, weight_decay=0.1) for patterns in CHOSEN),
    Adam(lr=0.01),
    Adam(lr=0.01, weight_decay=0.1),
    Adam(lr=0.01, weight_decay=0.1, decoupled=True),
    AdamW(lr=0.01),
    AdamW(lr=0.01, weight_decay=0.1, betas=(0.9, 0.98), eps=1e-9),
    Adam(lr=0.01, betas=(0.9, 0.98), eps=1e-9),
    Adam(lr=0.01, betas=(0, 0), eps=0.1),
    *(Adam(lr=0.01, rates=rates, weight_decay=0.1, decoupled=True) for rates in FACTORS),
    *(Adam(lr=0.01, decay_on=patterns, weight_decay=0.1, decoupled=True) for patterns in CHOSEN),
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("part", EXAMPLES, ids=named)
def test_fifty_steps_are_those_of_torch(part, dtype):
    assert_close(alone(part, dtype=dtype)[0], by_torch(part, dtype=dtype), dtype)


COMMON = {
    "lr": st.floats(1e-4, 1),
    "weight_decay": st.just(0.0) | st.floats(0, 0.5),
    "rates": st.sampled_from(list(FACTORS)),
    "decay_on": st.sampled_from(list(CHOSEN)),
}
ZERO_OR_BELOW_1 = st.just(0.0) | st.floats(0, 0.99)
PLAIN_SGD = st.builds(SGD, momentum=ZERO_OR_BELOW_1, dampening=ZERO_OR_BELOW_1, **COMMON)
NESTEROV = st.builds(SGD, momentum=st.floats(0.1, 0.99), nesterov=st.just(True), **COMMON)
BETAS = st.tuples(ZERO_OR_BELOW_1, st.floats(0, 0.9999))
ADAM = st.builds(Adam, betas=BETAS, eps=st.floats(1e-8, 0.1), **COMMON)
ADAMW = st.builds(Adam, betas=BETAS, eps=st.floats(1e-8, 0.1), decoupled=st.just(True), **COMMON)
KINDS = [PLAIN_SGD, NESTEROV, ADAM, ADAMW]


@settings(max_examples=80, deadline=None)
@given(part=st.one_of(KINDS), steps=st.integers(0, 12))
def test_any_options_give_what_torch_gives(part, steps):
    assert_close(alone(part, steps=steps)[0], by_torch(part, steps))


@settings(max_examples=80, deadline=None)
@given(parts=st.one_of([st.lists(kind, min_size=1, max_size=4) for kind in KINDS]), steps=st.integers(0, 12))
def test_the_runs_of_any_stack_are_those_of_each_alone(parts, steps):
    weights, state = together(parts, steps)
    for run, part in enumerate(parts):
        expected, memory = alone(part, run, steps)
        assert_close([weight[run] for weight in weights], expected)
        for slot, kept in memory.items():
            assert_close([value[run] for value in state[slot]], kept)


@pytest.mark.parametrize(
    "parts",
    [
        [SGD(lr=0.1), SGD(lr=0.2, momentum=0.9, dampening=0.9), SGD(weight_decay=0.1, dampening=0.3)],
        [
            SGD(momentum=m, nesterov=True, rates=r)
            for m, r in zip([0.5, 0.9, 0.99, 0.1], FACTORS, strict=True)
        ],
        [Adam(lr=0.01, betas=(0.9, b), eps=e) for b, e in [(0.999, 1e-8), (0.98, 1e-9), (0.9999, 1e-3)]],
        [Adam(lr=0.01, weight_decay=0.1, decoupled=True, decay_on=patterns) for patterns in CHOSEN],
        [AdamW(lr=0.01, weight_decay=decay) for decay in (0.0, 0.01, 0.3)],
    ],
    ids=["sgd", "nesterov", "adam", "decoupled", "adamw"],
)
def test_stacks_in_single_precision_lose_nothing_by_being_stacks(parts):
    weights, _ = together(parts, dtype=torch.float32)
    for run, part in enumerate(parts):
        expected, _ = alone(part, run, dtype=torch.float32)
        assert_close([weight[run] for weight in weights], expected, torch.float32)


def test_numbers_of_a_stack_are_tensors_and_those_that_spare_operations_are_not():
    shared = make_update([SGD(momentum=0.9)] * 3, NAMES, lead=1)
    assert shared._momentum.tolist() == torch.tensor([0.9] * 3).tolist()
    assert (shared._decays, shared._factors) == ([0.0] * 5, [1.0] * 5)
    apart = make_update([SGD(momentum=0.9), SGD(momentum=0.8)], NAMES, lead=1)
    assert apart._momentum.tolist() == torch.tensor([0.9, 0.8]).tolist()


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (SGD(momentum=0.9, weight_decay=0.013), {"weight_decay": 0.5, "momentum": 0.3}),
        (SGD(momentum=0.7, nesterov=True, dampening=0), {"momentum": 0.3}),
        (Adam(weight_decay=0.013), {"betas": (0.5, 0.6), "eps": 1e-3, "weight_decay": 0.2}),
        (Adam(weight_decay=0.013, decoupled=True), {"weight_decay": 0.5}),
        (AdamW(weight_decay=0.013), {"weight_decay": 0.5}),
    ],
    ids=["sgd", "nesterov", "adam", "decoupled", "adamw"],
)
def test_a_run_is_rounded_alike_whatever_its_company(part, other):
    """Alone, beside one like it, and beside one with other numbers: bit for bit."""
    single = {"dtype": torch.float32}
    first = [weight[0] for weight in together([part], **single)[0]]
    for company in (part, replace(part, **other)):
        beside = [weight[0] for weight in together([part, company], **single)[0]]
        assert all(torch.equal(one, two) for one, two in zip(first, beside, strict=True))


def test_the_learning_rate_of_the_recipe_is_not_used():
    weights = {lr: drawn(1) for lr in (0.1, 7.0)}
    for lr, each in weights.items():
        update = make_update([SGD(lr=lr)], NAMES, lead=0, dtype=torch.float64)
        update.apply_(each, drawn(2), update.initial(each), torch.tensor(0.5), torch.tensor(0))
    assert_close(weights[0.1], weights[7.0])


@pytest.mark.parametrize("part", [SGD(momentum=0.9, dampening=0.5), Adam()], ids=named)
def test_one_net_takes_its_rate_and_step_as_they_come(part):
    found = []
    for shape in [(), (1,)]:
        weights = drawn(1)
        update = make_update([part], NAMES, lead=0, dtype=torch.float64)
        state = update.initial(weights)
        for step in range(3):
            rate = torch.full(shape, 0.1, dtype=torch.float64)
            update.apply_(weights, drawn(2 + step), state, rate, torch.full(shape, step))
        assert [value.shape for value in weights] == [torch.Size(shape) for shape in SHAPES.values()]
        found.append(weights)
    assert_close(*found)


@pytest.mark.parametrize("part", EXAMPLES, ids=named)
def test_gradients_stay_as_they_are_and_tensors_stay_the_same_objects(part):
    weights, gradients, kept = drawn(1), drawn(2), drawn(2)
    update = make_update([part], NAMES, lead=0, dtype=torch.float64)
    state = update.initial(weights)
    places = [value.data_ptr() for value in [*weights, *chain(*state.values())]]
    update.apply_(weights, gradients, state, torch.tensor(0.1), torch.tensor(0))
    assert places == [value.data_ptr() for value in [*weights, *chain(*state.values())]]
    assert all(torch.equal(one, other) for one, other in zip(gradients, kept, strict=True))


@pytest.mark.parametrize(
    ("part", "slots"),
    [
        (SGD(), ()),
        (SGD(dampening=0.5), ()),
        (SGD(momentum=0.9), ("momentum",)),
        (Adam(), ("mean", "square")),
    ],
    ids=named,
)
def test_the_state_begins_as_zeros_for_each_slot(part, slots):
    update = make_update([part], NAMES, lead=0, dtype=torch.float64)
    state = update.initial([value.requires_grad_() for value in drawn(1)])
    assert update.slots == tuple(state) == slots
    for values in state.values():
        assert [value.shape for value in values] == [torch.Size(shape) for shape in SHAPES.values()]
        assert not any(value.any() or value.requires_grad for value in values)


def test_parameters_of_another_precision_are_refused():
    update = make_update([Adam()], NAMES, lead=0)
    with pytest.raises(
        ValueError, match=r"the parameters are torch.float64: make_update\(..., dtype=torch.float64\)"
    ):
        update.initial(drawn(1))


def test_a_run_may_begin_later_than_the_others_of_its_stack():
    part = SGD(momentum=0.9, dampening=0.9)
    update = make_update([part, part], NAMES, lead=1, dtype=torch.float64)
    weights = stacked(1, 2)
    state = update.initial(weights)
    state["momentum"] = [torch.stack((value[0], 0 * value[1])) for value in stacked(7, 2)]
    before = [value.clone() for value in state["momentum"]]
    gradients = stacked(2, 2)
    update.apply_(weights, gradients, state, torch.tensor([0.1, 0.1]), torch.tensor([5, 0]))
    for found, old, gradient in zip(state["momentum"], before, gradients, strict=True):
        torch.testing.assert_close(found[0], 0.9 * old[0] + 0.1 * gradient[0])
        torch.testing.assert_close(found[1], gradient[1])


@pytest.mark.parametrize(
    "part", [SGD(momentum=0.9, weight_decay=0.1), Adam(weight_decay=0.1, decoupled=True)], ids=str
)
def test_a_rate_of_zero_moves_no_weight(part):
    weights = drawn(1)
    update = make_update([part], NAMES, lead=0, dtype=torch.float64)
    gradients = [torch.zeros_like(value) for value in weights]
    update.apply_(weights, gradients, update.initial(weights), torch.tensor(0.0), torch.tensor(0))
    assert all(torch.equal(one, other) for one, other in zip(weights, drawn(1), strict=True))


# What goes wrong in one run stays there.


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("form", ["gradient", "loss", "norm"])
@pytest.mark.parametrize("kind", [SGD, Adam])
def test_a_run_of_no_numbers_does_not_touch_the_others(kind, form, bad):
    extra = [{"momentum": 0.9}, {"momentum": 0.5}, {}] if kind is SGD else [{"eps": 1e-3}, {}, {}]
    parts = [kind(weight_decay=0.1 * run, decay_form=form, **options) for run, options in enumerate(extra)]
    found = {}
    for broken in (False, True):
        update = make_update(parts, NAMES, lead=1, dtype=torch.float64)
        weights = stacked(1, 3)
        averages = stacked(3, 3)
        state = update.initial(weights)
        for step in range(3):
            gradients = stacked(10 + step, 3)
            if broken:
                gradients[3][1] = bad
                weights[0][1] = bad
            penalty = update.penalty_(weights, gradients)
            norms = clip_by_norm_(gradients, 1.0, lead=1)
            update.apply_(weights, gradients, state, torch.full((3,), 0.1), torch.full((3,), step))
            average_(averages, weights, 0.9)
        rest = [norms] if penalty is None else [norms, penalty]
        found[broken] = [*weights, *averages, *rest, *chain(*state.values())]
    for whole, broken in zip(found[False], found[True], strict=True):
        assert torch.equal(whole[[0, 2]], broken[[0, 2]])
    assert not found[True][0][1].isfinite().any()


# Which layers.


@pytest.mark.parametrize("kind", [SGD, Adam])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"rates": {"haed.*": 0.1}},
            "'haed.*' in rates matches no parameter; the nearest are head.bias, head.weight, ",
        ),
        (
            {"decay_on": ["head.*", "head.weights"]},
            "'head.weights' in decay_on matches no parameter; the nearest are head.weight, ",
        ),
        ({"rates": {"Head.*": 0.1}}, "'Head.*' in rates matches no parameter; the nearest are head."),
        ({"decay_on": [""]}, "'' in decay_on matches no parameter; the nearest are "),
        (
            {"rates": {"*": 0.1, "head.*": 1}},
            "'head.*' in rates has no effect: patterns before it match the same parameters, and the first match "
            "counts; put it before them",
        ),
        ({"rates": [["head.*", 1], ["head.*", 2]]}, "'head.*' in rates has no effect"),
    ],
)
def test_a_pattern_without_effect_is_refused(kind, options, message):
    with pytest.raises(RecipeError, match=r"in (rates|decay_on)") as caught:
        make_update([kind(), kind(**options)], NAMES, lead=1)
    assert str(caught.value).startswith(f"optimiser: {message}")


@pytest.mark.parametrize(
    ("parts", "lead", "message"),
    [
        (
            [SGD(momentum=0.9), SGD(momentum=0.9, nesterov=True)],
            1,
            "nesterov differs between the runs of a stack (False, True); train them apart",
        ),
        (
            [Adam(), Adam(decoupled=True)],
            1,
            "decoupled differs between the runs of a stack (False, True); train them apart",
        ),
        (
            [Adam(), Adam(decay_form="norm"), Adam(decay_form="loss")],
            1,
            "decay_form differs between the runs of a stack (gradient, loss, norm); train them apart",
        ),
        (
            [SGD(), Adam()],
            1,
            "the runs of a stack have one kind of optimiser, not adam, sgd; train them apart",
        ),
        ([], 1, "one net (lead=0) has one optimiser, a stack one for each run; 0 given"),
        ([SGD(), SGD()], 0, "one net (lead=0) has one optimiser, a stack one for each run; 2 given"),
        ([SGD()], 2, "lead is 0 for one net or 1 for a stack of runs, not 2"),
    ],
)
def test_the_whole_message_for_a_stack_that_cannot_be(parts, lead, message):
    with pytest.raises(ValueError, match=r"\w") as caught:
        make_update(parts, NAMES, lead)
    assert str(caught.value) == message


def test_an_optimiser_without_a_rule_is_refused():
    with pytest.raises(TypeError, match=r"no rule for the optimiser Optimiser\(\)"):
        make_update([Optimiser()], NAMES, lead=0)


# Weight decay in the loss.


def written_out(part, weights):
    """The penalty as a formula for autograd."""
    chosen = [weight for name, weight in zip(NAMES, weights, strict=True) if name in CHOSEN[part.decay_on]]
    if part.decay_form == "loss":
        return sum(part.weight_decay * (weight**2).sum() / 2 for weight in chosen)
    return sum(part.weight_decay * (weight**2).sum().sqrt() for weight in chosen)


@pytest.mark.parametrize("kind", [SGD, Adam])
@pytest.mark.parametrize("form", ["loss", "norm"])
@pytest.mark.parametrize("patterns", CHOSEN, ids=str)
def test_penalties_and_their_gradients_are_those_of_the_formula(kind, form, patterns):
    parts = [kind(weight_decay=decay, decay_form=form, decay_on=patterns) for decay in (0.04, 0.5, 0.0)]
    stack, gradients = stacked(1, 3), stacked(2, 3)
    penalty = make_update(parts, NAMES, lead=1, dtype=torch.float64).penalty_(stack, gradients)
    assert penalty.shape == (3,)
    for run, part in enumerate(parts):
        weights = [value.requires_grad_() for value in drawn(1, run)]
        value = written_out(part, weights)
        slopes = torch.autograd.grad(value, weights, allow_unused=True, materialize_grads=True)
        expected = [one + other for one, other in zip(drawn(2, run), slopes, strict=True)]
        torch.testing.assert_close(penalty[run], value.detach(), rtol=1e-12, atol=0)
        assert_close([gradient[run] for gradient in gradients], expected)
        own = drawn(2, run)
        single = make_update([part], NAMES, lead=0, dtype=torch.float64).penalty_(drawn(1, run), own)
        assert single.shape == ()
        torch.testing.assert_close(single, penalty[run], rtol=1e-12, atol=0)
        assert_close(own, expected)


@pytest.mark.parametrize(
    "part", [SGD(weight_decay=0.1), Adam(weight_decay=0.1), Adam(weight_decay=0.1, decoupled=True)]
)
def test_decay_of_the_gradient_is_no_penalty(part):
    gradients = drawn(2)
    assert make_update([part], NAMES, lead=0, dtype=torch.float64).penalty_(drawn(1), gradients) is None
    assert all(torch.equal(one, other) for one, other in zip(gradients, drawn(2), strict=True))


@pytest.mark.parametrize("form", ["loss", "norm"])
@pytest.mark.parametrize("kind", [SGD, Adam])
def test_decay_in_the_loss_is_not_added_a_second_time(kind, form):
    found = []
    for part in (kind(), kind(weight_decay=0.5, decay_form=form)):
        weights = drawn(1)
        update = make_update([part], NAMES, lead=0, dtype=torch.float64)
        update.apply_(weights, drawn(2), update.initial(weights), torch.tensor(0.1), torch.tensor(0))
        found.append(weights)
    assert_close(*found)


@pytest.mark.parametrize("decays", [[0.1], [0.1, 0.2]])
def test_the_norm_of_nothing_has_no_slope(decays):
    parts = [SGD(weight_decay=decay, decay_form="norm") for decay in decays]
    weights = [torch.zeros_like(value) for value in stacked(1, len(parts), torch.float32)]
    gradients = stacked(2, len(parts), torch.float32)
    kept = [value.clone() for value in gradients]
    assert make_update(parts, NAMES, lead=1).penalty_(weights, gradients).tolist() == [0.0] * len(parts)
    assert all(torch.equal(one, other) for one, other in zip(gradients, kept, strict=True))


def test_decay_in_the_loss_is_plain_decay_where_nothing_is_clipped():
    in_loss, in_gradient = drawn(1), drawn(1)
    for weights, form in ((in_loss, "loss"), (in_gradient, "gradient")):
        part = SGD(momentum=0.9, weight_decay=0.1, decay_form=form)
        update = make_update([part], NAMES, lead=0, dtype=torch.float64)
        state = update.initial(weights)
        for step in range(5):
            gradients = drawn(10 + step)
            update.penalty_(weights, gradients)
            update.apply_(weights, gradients, state, torch.tensor(0.1), torch.tensor(step))
    assert_close(in_loss, in_gradient)


# Clipping and averages.


@settings(max_examples=60, deadline=None)
@given(
    scales=st.lists(st.sampled_from([0.0, 1e-8, 0.1, 1.0, 30.0, 1e6]), min_size=1, max_size=4),
    limit=st.floats(1e-3, 100),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_clipping_is_that_of_torch_for_each_run(scales, limit, dtype):
    expected, norms = [], []
    for run, scale in enumerate(scales):
        holders = [nn.Parameter(torch.zeros_like(value)) for value in drawn(2, run, dtype)]
        for holder, value in zip(holders, drawn(2, run, dtype), strict=True):
            holder.grad = scale * value
        norms.append(clip_grad_norm_(holders, limit))
        expected.append([holder.grad for holder in holders])
    size = torch.tensor(scales, dtype=dtype)
    gradients = [value * size.view(-1, *[1] * (value.dim() - 1)) for value in stacked(2, len(scales), dtype)]
    found = clip_by_norm_(gradients, limit, lead=1)
    torch.testing.assert_close(found, torch.stack(norms))
    for run, own in enumerate(expected):
        assert_close([gradient[run] for gradient in gradients], own, dtype)
        single = [scales[run] * value for value in drawn(2, run, dtype)]
        norm = clip_by_norm_(single, limit, lead=0)
        assert norm.shape == ()
        assert_close(single, own, dtype)


@pytest.mark.parametrize("parameters", [6, 10, 40])
def test_a_run_is_clipped_by_the_same_norm_in_any_company(parameters):
    """Bit for bit; torch's sums over a first dimension depend on how long the second is."""
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(100, 5, generator=generator) for _ in range(parameters)]
    together = clip_by_norm_([value.clone() for value in gradients], 1.0, lead=1)
    for runs in (1, 3, 10):
        found = [
            clip_by_norm_([v[at : at + runs].clone() for v in gradients], 1.0, 1) for at in range(0, 90, runs)
        ]
        assert torch.equal(torch.cat(found), together[:90])


def test_each_run_may_have_a_limit_of_its_own_or_none():
    limits = torch.tensor([0.5, math.inf, 2.0], dtype=torch.float64)
    gradients = stacked(2, 3)
    norms = clip_by_norm_(gradients, limits, lead=1)
    after = torch.stack([sum((value[run] ** 2).sum() for value in gradients).sqrt() for run in range(3)])
    torch.testing.assert_close(after, torch.minimum(limits, norms), rtol=1e-5, atol=0)
    assert norms[2] > 2
    assert all(torch.equal(one[1], other[1]) for one, other in zip(gradients, stacked(2, 3), strict=True))


@pytest.mark.parametrize("decay", [0.0, 0.3, 0.9, 0.9999])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_averages_by_the_formula(decay, dtype):
    averages, expected = drawn(1, dtype=dtype), drawn(1)
    for step in range(20):
        average_(averages, drawn(10 + step, dtype=dtype), decay)
        expected = [decay * a + (1 - decay) * w for a, w in zip(expected, drawn(10 + step), strict=True)]
    assert_close(averages, [value.to(dtype) for value in expected], dtype)


# Compiled, and without a graph of derivatives.

STACKS = [
    [SGD(lr=0.1)],
    [SGD(momentum=0.9, dampening=0.9, weight_decay=0.1, rates={"head.*": 0.1})],
    [SGD(momentum=0.9), SGD(momentum=0.5, dampening=0.5, weight_decay=0.1, decay_on=["*.bias"])],
    [SGD(momentum=0.9, nesterov=True), SGD(momentum=0.5, nesterov=True, rates={"head.*": 0.1})],
    [
        SGD(momentum=0.9, weight_decay=0.1, decay_form="norm"),
        SGD(momentum=0.9, weight_decay=0.2, decay_form="norm"),
    ],
    [Adam(lr=0.01, weight_decay=0.1)],
    [
        Adam(lr=0.01, decoupled=True),
        Adam(lr=0.01, decoupled=True, betas=(0.8, 0.98), eps=1e-3, weight_decay=0.1),
    ],
    [Adam(lr=0.01, weight_decay=0.1, decay_form="loss"), Adam(lr=0.01, weight_decay=0.2, decay_form="loss")],
]


def drawn_for(parts, lead, seed):
    return stacked(seed, len(parts), torch.float32) if lead else drawn(seed, dtype=torch.float32)


def full_steps(parts, wrap, lead, steps=4):
    """Everything that a training does with gradients, as one function that `wrap` may compile."""
    update = make_update(parts, NAMES, lead)
    weights = [value.requires_grad_() for value in drawn_for(parts, lead, 1)]
    averages = [value.detach().clone() for value in weights]
    state = update.initial(weights)

    def advance(weights, gradients, state, averages, rate, step):
        penalty = update.penalty_(weights, gradients)
        norms = clip_by_norm_(gradients, 1.0, lead)
        update.apply_(weights, gradients, state, rate, step)
        average_(averages, weights, 0.9)
        return norms if penalty is None else norms + penalty

    advance = wrap(advance)
    for step in range(steps):
        gradients = drawn_for(parts, lead, 10 + step)
        rate = torch.tensor([rate_at(step, part) for part in parts])
        taken = torch.full((len(parts),), step)
        if not lead:
            rate, taken = rate[0], taken[0]
        reported = advance(weights, gradients, state, averages, rate, taken)
    return [*weights, *averages, *chain(*state.values()), reported]


@pytest.mark.parametrize("parts", STACKS, ids=named)
def test_a_whole_step_compiles_to_one_graph_that_serves_all_steps(parts):
    torch._dynamo.reset()
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    lead = len(parts) - 1
    compiled = full_steps(
        parts, lambda advance: torch.compile(advance, backend=backend, fullgraph=True), lead
    )
    torch._dynamo.reset()
    assert len(graphs) == 1
    for one, other in zip(compiled, full_steps(parts, lambda advance: advance, lead), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("parts", STACKS, ids=named)
def test_no_derivative_is_recorded_with_or_without_no_grad_around(parts):
    lead = len(parts) - 1
    found = full_steps(parts, lambda advance: advance, lead)
    inside = full_steps(parts, torch.no_grad(), lead)
    for one, other in zip(found, inside, strict=True):
        assert torch.equal(one, other)
        assert one.grad_fn is None
        assert one.is_leaf
    assert [value.requires_grad for value in found[: len(NAMES) + 1]] == [True] * len(NAMES) + [False]


@pytest.mark.parametrize("parts", STACKS, ids=named)
def test_no_value_is_asked_for(parts):
    """Tensors without values refuse to be looked at: what runs with them never makes the host wait for a device."""
    lead, meta = len(parts) - 1, torch.device("meta")
    update = make_update(parts, NAMES, lead, meta)
    weights, gradients, averages = ([value.to(meta) for value in drawn_for(parts, lead, 1)] for _ in range(3))
    rate = torch.zeros((len(parts),) if lead else (), device=meta)
    update.penalty_(weights, gradients)
    clip_by_norm_(gradients, rate, lead)
    update.apply_(weights, gradients, update.initial(weights), rate, rate.long())
    average_(averages, weights, 0.9)
    with pytest.raises(RuntimeError):
        bool(rate.sum() == 0)


@pytest.mark.cuda
@pytest.mark.parametrize("parts", STACKS, ids=named)
def test_a_recorded_step_can_be_replayed_without_the_host(parts):
    lead = len(parts) - 1
    device = torch.device("cuda")
    update = make_update(parts, NAMES, lead, device)
    weights = [value.to(device) for value in drawn_for(parts, lead, 1)]
    begin = [value.clone() for value in weights]
    averages = [value.clone() for value in weights]
    state = update.initial(weights)
    gradients = [torch.zeros_like(value) for value in weights]
    rate = torch.zeros((len(parts),) if lead else (), device=device)
    taken = torch.zeros((len(parts),) if lead else (), device=device, dtype=torch.int64)

    def advance():
        update.penalty_(weights, gradients)
        clip_by_norm_(gradients, 1.0, lead)
        update.apply_(weights, gradients, state, rate, taken)
        average_(averages, weights, 0.9)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        advance()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        advance()
    for value, first in zip([*weights, *averages], begin * 2, strict=True):
        value.copy_(first)
    for value in chain(*state.values()):
        value.zero_()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in range(4):
            fresh = drawn_for(parts, lead, 10 + step)
            for value, new in zip(gradients, fresh, strict=True):
                value.copy_(new.pin_memory(), non_blocking=True)
            rates = torch.tensor([rate_at(step, part) for part in parts])
            rate.copy_((rates if lead else rates[0]).pin_memory(), non_blocking=True)
            taken.fill_(step)
            graph.replay()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected = full_steps(parts, lambda advance: advance, lead)
    for one, other in zip([*weights, *averages], expected, strict=False):
        torch.testing.assert_close(one.cpu(), other.detach(), rtol=1e-5, atol=1e-6)
