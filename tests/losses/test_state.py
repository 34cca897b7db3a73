"""What losses learn, count and draw: when, by whom, and where it is kept."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest
import torch
from torch import distributed, multiprocessing, nn

from leaving import leave
from softtargets.losses import (
    LABO,
    BetaSmoothing,
    DisturbLabel,
    KnowledgeRefinery,
    LinearLoss,
    OnlineLabelSmoothing,
)

from .making import batch

STATEFUL = {
    "online label smoothing": lambda: OnlineLabelSmoothing(4),
    "knowledge refinery": lambda: KnowledgeRefinery(4),
    "labo": lambda: LABO(warmup_steps=5),
    "beta smoothing": BetaSmoothing,
}
DRAWING = {"beta smoothing": BetaSmoothing, "disturb label": lambda: DisturbLabel(1.0)}


def what_it_knows(loss):
    return {name: value.clone() for name, value in loss.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", STATEFUL)
def test_nothing_is_learnt_where_no_gradient_is_wanted(name, mode):
    loss = STATEFUL[name]()
    before = what_it_knows(loss)
    with mode():
        loss(*batch(20, 4, torch.float32))
    assert same(what_it_knows(loss), before)
    if name != "beta smoothing":  # which counts when its net has been changed
        loss(*batch(20, 4, torch.float32))
        assert not same(what_it_knows(loss), before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", DRAWING)
def test_nothing_is_drawn_where_no_gradient_is_wanted(name, mode):
    loss, (logits, labels) = DRAWING[name](), batch(20, 4)
    before = torch.random.get_rng_state()
    with mode():
        found = loss(logits, labels)
    torch.testing.assert_close(found, nn.functional.cross_entropy(logits, labels))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert loss(logits, labels) != found


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_whole_layer_knows_too_whether_gradients_are_wanted(reduction):
    hidden, weight, target = torch.randn(9, 3), torch.randn(4, 3, requires_grad=True), torch.arange(9) % 4
    loss = LinearLoss(DisturbLabel(1.0, reduction=reduction), chunk_rows=4)
    plain = nn.functional.cross_entropy(hidden @ weight.t(), target, reduction=reduction)
    with torch.no_grad():
        torch.testing.assert_close(loss(hidden, weight, target), plain)
    assert not torch.allclose(loss(hidden, weight, target), plain)


@pytest.mark.parametrize("name", ["online label smoothing", "knowledge refinery"])
@pytest.mark.parametrize("row", [[torch.nan, torch.nan, 1.0, 0.0], [torch.inf, torch.inf, 1.0, 0.0]])
def test_what_is_no_number_is_not_learnt_and_the_rest_is(name, row):
    logits, labels = batch(20, 4, torch.float32)
    loss, clean = STATEFUL[name](), STATEFUL[name]()
    with_row = torch.cat([logits, torch.tensor([row])]), torch.cat([labels, torch.tensor([0])])
    loss(*with_row)
    clean(logits, labels)
    ignored = STATEFUL[name]()
    ignored(with_row[0], torch.cat([labels, torch.tensor([-100])]))
    for each in (loss, ignored):
        for key, value in what_it_knows(each).items():
            torch.testing.assert_close(value, clean.state_dict()[key])
        each(torch.full((3, 4), torch.nan), torch.tensor([0, 1, 2]))
        each.end_epoch()
        assert all(value.isfinite().all() for value in each.state_dict().values())


@pytest.mark.parametrize("name", STATEFUL)
def test_a_model_to_which_a_loss_is_added_loads_older_checkpoints(name):
    older, model = nn.Linear(2, 4), nn.Linear(2, 4)
    model.loss = STATEFUL[name]()
    model.load_state_dict(older.state_dict(), strict=True)
    with_loss = model.state_dict()
    assert len(with_loss) > 2
    model.load_state_dict(with_loss, strict=True)
    model.loss.persistent(False)
    older.load_state_dict(model.state_dict(), strict=True)


def test_a_state_in_part_is_refused():
    loss = OnlineLabelSmoothing(4)
    state = loss.state_dict()
    del state["counts"]
    with pytest.raises(RuntimeError, match=r"Missing key.*counts"):
        loss.load_state_dict(state)
    with pytest.raises(RuntimeError, match=r"table must have the shape \(4, 4\), not \(5, 5\)"):
        loss.load_state_dict(OnlineLabelSmoothing(5).state_dict())


@pytest.mark.parametrize("name", STATEFUL)
def test_copies_know_the_same_and_go_their_own_way(name):
    loss = STATEFUL[name]()
    loss(*batch(20, 4, torch.float32))
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        before = what_it_knows(loss)
        assert same(what_it_knows(other), before)
        other(*batch(20, 4, torch.float32, seed=1))
        assert same(what_it_knows(loss), before)


def test_the_precision_of_a_model_around_it_does_not_round_what_is_known():
    model = nn.ModuleDict({"loss": OnlineLabelSmoothing(100), "other": KnowledgeRefinery(4)})
    model.to(torch.bfloat16)
    loss = model["loss"]
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        logits = torch.randn(64, 100, generator=generator, dtype=torch.bfloat16)
        loss(logits, logits.argmax(-1))
    loss.end_epoch()
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    torch.testing.assert_close(loss.table.sum(-1), torch.ones(100), rtol=0, atol=1e-5)
    assert loss.double().table.dtype == torch.float64


class Trained(nn.Module):
    """A model that computes its own loss."""

    def __init__(self, loss):
        super().__init__()
        self.net, self.loss = nn.Linear(4, 4, bias=False), loss
        self.register_buffer("other", torch.zeros(1))  # such that there is something for DDP to overwrite
        nn.init.eye_(self.net.weight)

    def forward(self, inputs, labels):
        return self.loss(self.net(inputs), labels)


def _trained(rank, file, results):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{file}", rank=rank, world_size=2, timeout=timedelta(seconds=120)
    )
    found = {}
    for name, make in STATEFUL.items():
        model = nn.parallel.DistributedDataParallel(Trained(make()))
        for epoch in range(2):
            for step in range(3):
                inputs, labels = batch(20, 4, torch.float32, seed=2 * (3 * epoch + step) + rank)
                model(inputs, labels).backward()
            model.module.loss.end_epoch()
        found[name] = what_it_knows(model.module.loss)
    torch.save(found, f"{results}/{rank}")
    leave(rank, 2, results)


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
def test_inside_a_model_that_ddp_trains_no_example_is_lost(tmp_path):
    multiprocessing.spawn(_trained, (tmp_path / "meet", str(tmp_path)), nprocs=2)
    found = [torch.load(tmp_path / str(rank)) for rank in range(2)]
    assert all(same(*(each[name] for each in found)) for name in STATEFUL)
    known = found[0]
    alone = OnlineLabelSmoothing(4)
    for epoch in range(2):
        for seed in range(6 * epoch, 6 * epoch + 6):
            alone(*batch(20, 4, torch.float32, seed=seed))
        alone.end_epoch()
    torch.testing.assert_close(known["online label smoothing"]["table"], alone.table)
    tables = [KnowledgeRefinery(4), KnowledgeRefinery(4)]
    for epoch in range(2):
        for step in range(3):
            for rank, each in enumerate(tables):
                each(*batch(20, 4, torch.float32, seed=2 * (3 * epoch + step) + rank))
        mean = (tables[0].table + tables[1].table) / 2
        for each in tables:
            each.table.copy_(mean)
    torch.testing.assert_close(known["knowledge refinery"]["table"], mean)
    assert known["labo"]["step"] == 5 + 1


def _alone(rank, file, results):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{file}", rank=rank, world_size=2, timeout=timedelta(seconds=120)
    )
    distributed.distributed_c10d._get_default_store().set_timeout(timedelta(seconds=1))
    loss = OnlineLabelSmoothing(4)
    loss(*batch(20, 4, torch.float32, seed=rank))
    before = what_it_knows(loss)
    if rank == 0:
        with pytest.raises(RuntimeError, match="end_epoch adds up what all 2 processes"):
            loss.end_epoch()
        assert same(what_it_knows(loss), before)
    number = torch.tensor([rank])
    distributed.all_reduce(number)  # nothing of the attempt is left in the way
    assert number == 1
    loss.sync_on_end_epoch = False
    loss.end_epoch()
    torch.save(loss.table, f"{results}/{rank}")
    leave(rank, 2, results)


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
def test_who_ends_an_epoch_alone_is_told_so_and_can_say_that_it_is_meant(tmp_path):
    multiprocessing.spawn(_alone, (tmp_path / "meet", str(tmp_path)), nprocs=2)
    for rank in range(2):
        loss = OnlineLabelSmoothing(4)
        loss(*batch(20, 4, torch.float32, seed=rank))
        loss.end_epoch()
        torch.testing.assert_close(torch.load(tmp_path / str(rank)), loss.table)
