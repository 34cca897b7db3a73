"""Distillation with the real Trainer: a live teacher, and one that was stored."""

from __future__ import annotations

import pytest
import torch
from transformers import Trainer, default_data_collator

from integrations.huggingface import small
from softtargets.integrations.huggingface import (
    DistillationTrainer,
    StoredTeacher,
    loss_function,
    store_teacher,
)
from softtargets.integrations.huggingface.rows import accepted, unwrapped
from softtargets.integrations.huggingface.stored import ROW, most_probable
from softtargets.losses import Distillation, LabelSmoothing

HINTON = {"temperature": 2.0, "beta": 0.7}


def hinton(student, teacher, labels, temperature, beta):
    """The text-book loss of the positions that count, one after the other."""
    losses = []
    for z, t, y in zip(
        *(each.reshape(-1, each.shape[-1]) for each in (student, teacher)), labels.reshape(-1), strict=True
    ):
        if y == -100:
            continue
        q = (t / temperature).softmax(-1)
        soft = -(q * (z / temperature).log_softmax(-1)).sum() * temperature**2
        losses.append((1 - beta) * -z.log_softmax(-1)[y] + beta * soft)
    return torch.stack(losses).mean().item()


def trainer_of(tmp_path, teacher, data, student=None, loss=None, **options):
    extras = {
        name: options.pop(name) for name in ("eval_dataset", "data_collator", "shift") if name in options
    }
    return DistillationTrainer(
        student or small.causal(1),
        small.arguments(tmp_path, **options),
        train_dataset=data,
        teacher=teacher,
        loss=loss or Distillation.hinton(**HINTON),
        **extras,
    )


@pytest.mark.parametrize("kind", ["causal", "classification"])
def test_a_live_teacher(kind, tmp_path):
    make, data = (
        (small.causal, small.sentences(4)) if kind == "causal" else (small.classifier, small.labelled(4))
    )
    student, teacher = make(1), make(2)
    if kind == "causal":
        data.columns["labels"][:, 0] = -100  # which Trainer would count, though nothing predicts it
    columns = dict(data.columns)
    labels = columns.pop("labels")
    with torch.no_grad():
        said, taught = student(**columns).logits, teacher(**columns).logits
    pair = (said[:, :-1], taught[:, :-1], labels[:, 1:]) if kind == "causal" else (said, taught, labels)
    teacher.train()
    before = small.weights_of(teacher).clone()
    trainer = trainer_of(tmp_path, teacher, data, student, max_steps=2)
    trainer.train()
    assert small.losses_of(trainer)[0] == pytest.approx(hinton(*pair, **HINTON), rel=1e-5)
    assert torch.equal(small.weights_of(teacher), before)


class Pairs(torch.nn.Module):
    """A classifier that asks which of two sentences a token is in; an odd input makes it fail."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = small.classifier(2)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        self.asked = {"input_ids", *(["token_type_ids"] if token_type_ids is not None else [])}
        return self.inside(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)


class Alone(torch.nn.Module):
    """One that knows of no pairs, and takes nothing that it does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = small.classifier(1)

    def forward(self, input_ids, attention_mask=None, labels=None):
        return self.inside(input_ids, attention_mask=attention_mask)


@pytest.mark.parametrize("unused", [True, False])
def test_teacher_and_student_get_what_each_of_them_takes(unused, tmp_path):
    """A student like DistilBERT has no token types, for which its teacher, BERT, would otherwise see zeros."""
    data = small.labelled(8)
    kinds = (torch.arange(7) > 3).long().expand(8, 7).contiguous()
    data = small.Examples(
        **data.columns, token_type_ids=kinds, **({"idx": torch.arange(8)} if unused else {})
    )
    teacher, student = Pairs(), Alone()
    trainer = trainer_of(tmp_path, teacher, data, student, max_steps=1)
    batch = next(iter(trainer.get_train_dataloader()))
    found = trainer.compute_loss(student, dict(batch)).item()
    assert "token_type_ids" in teacher.asked
    columns = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        told = teacher.eval()(**columns, token_type_ids=batch["token_type_ids"]).logits
        z = student(**columns).logits
    assert found == pytest.approx(hinton(z, told, batch["labels"], **HINTON), rel=1e-5)
    trainer.train()
    assert trainer.evaluate(data)["eval_loss"] > 0
    del data.columns["labels"]
    assert trainer.predict(data).predictions.shape == (8, 3)
    # The other way round: the student has token types, of which the teacher knows nothing.
    data = small.Examples(**small.labelled(8).columns, token_type_ids=kinds)
    trainer_of(tmp_path, Alone(), data, small.classifier(1), max_steps=1).train()
    store_teacher(Alone(), data, tmp_path / "teacher.safetensors", k=2)


class Anything(torch.nn.Module):
    """As PEFT, DataParallel and ``torch.compile`` wrap a model: its forward takes anything and hands it on."""

    def __init__(self, name, inside) -> None:
        super().__init__()
        setattr(self, name, inside)
        self.name = name

    def forward(self, *args, **kwargs):
        return getattr(self, self.name)(*args, **kwargs)


class Adapted(Anything):
    """As PEFT's, of whose two layers the inner one has the model."""

    def __init__(self, inside) -> None:
        super().__init__("base_model", Anything("model", inside))
        self.special_peft_forward_args = {"adapter_names"}

    def get_base_model(self):
        return self.base_model.model


WRAPPED = {
    "peft": Adapted,
    "parallel": torch.nn.DataParallel,
    "compiled": lambda inside: Anything("_orig_mod", inside),
    "parallel peft": lambda inside: torch.nn.DataParallel(Adapted(inside)),
    "compiled peft": lambda inside: Anything("_orig_mod", Adapted(inside)),
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_wrapped_teacher_gets_what_the_model_inside_takes(kind, tmp_path):
    """The student has token types, of which this teacher knows nothing, and the other way round."""
    kinds = (torch.arange(7) > 3).long().expand(8, 7).contiguous()
    data = small.Examples(**small.labelled(8).columns, token_type_ids=kinds)
    teacher = WRAPPED[kind](Alone())
    trainer = trainer_of(tmp_path, teacher, data, small.classifier(1), max_steps=1)
    trainer.train()
    bare = trainer_of(tmp_path, Alone(), data, small.classifier(1), max_steps=1)
    bare.train()
    assert small.losses_of(trainer) == small.losses_of(bare)
    store_teacher(teacher, data, tmp_path / "teacher.safetensors", k=2)
    pairs = Pairs()
    trainer_of(tmp_path, WRAPPED[kind](pairs), data, Alone(), max_steps=1).train()
    assert "token_type_ids" in pairs.asked


def test_models_are_found_inside_of_wrappers():
    inside = Alone()
    for wrap in WRAPPED.values():
        assert unwrapped(wrap(inside)) is inside
    assert unwrapped(torch.compile(inside)) is inside
    own = Anything("student", inside)  # which may read whatever it likes
    assert unwrapped(own) is own
    named = Pairs()
    named.module = inside  # an ordinary attribute of a model that names its inputs
    assert unwrapped(named) is named
    given = {"input_ids": 1, "adapter_names": 2, "idx": 3}
    assert accepted(Adapted(inside), given) == {"input_ids": 1, "adapter_names": 2}
    assert accepted(own, given) == given


@pytest.mark.parametrize("mixed", [False, True])
def test_a_teacher_of_peft(mixed, tmp_path):
    peft = pytest.importorskip("peft")
    kinds = (torch.arange(7) > 3).long().expand(8, 7).contiguous()
    data = small.Examples(**small.labelled(8).columns, token_type_ids=kinds)
    for inside in (Alone(), small.classifier(2)):
        teacher = peft.get_peft_model(inside, peft.LoraConfig(r=2, target_modules=["query"]), mixed=mixed)
        assert unwrapped(teacher) is inside
        trainer = trainer_of(tmp_path, teacher, data, small.classifier(1), max_steps=1)
        trainer.train()
        assert len(small.losses_of(trainer)) == 1


def test_a_teacher_that_cannot_be_moved_stays_where_it_is(tmp_path):
    """As one that is larger than a device, whose parts lie on several."""
    from accelerate import dispatch_model

    teacher = small.causal(2)
    map = {name: "cpu" for name, _ in teacher.named_children()} | {"transformer": "disk"}
    teacher.tie_weights()
    teacher = dispatch_model(
        teacher, map, main_device="cpu", offload_dir=tmp_path / "offloaded", force_hooks=True
    )
    teacher.hf_device_map = map
    with pytest.raises(RuntimeError, match="move"):
        teacher.to("cpu")
    trainer = trainer_of(tmp_path, teacher, small.sentences(4))
    trainer.train()
    whole = trainer_of(tmp_path, small.causal(2), small.sentences(4))
    whole.train()
    assert small.losses_of(trainer) == pytest.approx(small.losses_of(whole), rel=1e-6)


def test_accumulated_gradients_are_those_of_one_large_batch(tmp_path):
    def trained(**sizes):
        trainer = trainer_of(tmp_path, small.causal(2), small.sentences(), **sizes)
        trainer.train()
        return small.losses_of(trainer), small.weights_of(trainer.model)

    losses, weights = trained(per_device_train_batch_size=8)
    parts, same = trained(per_device_train_batch_size=2, gradient_accumulation_steps=4)
    assert parts == pytest.approx(losses, rel=1e-5)
    torch.testing.assert_close(same, weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rest", ["spread", "drop"])
def test_all_classes_stored_is_the_live_teacher(rest, tmp_path):
    teacher, data = small.causal(2), small.sentences()
    live = trainer_of(tmp_path, teacher, data)
    live.train()
    store_teacher(teacher, data, tmp_path / "teacher.safetensors", k=small.VOCABULARY, temperature=2.0)
    stored = trainer_of(tmp_path, StoredTeacher(tmp_path / "teacher.safetensors", rest=rest), data)
    stored.train()
    # The data are shuffled: each example has found its own rows. Log-probabilities were kept in half precision.
    assert small.losses_of(stored) == pytest.approx(small.losses_of(live), rel=1e-3)
    torch.testing.assert_close(
        small.weights_of(stored.model), small.weights_of(live.model), rtol=1e-2, atol=1e-4
    )


def test_the_rest_keeps_the_teachers_mass(tmp_path):
    """With the rest spread, targets have the teacher's probability at the stored classes and sum to 1."""
    torch.manual_seed(0)
    logits = 2 * torch.randn(50, small.VOCABULARY)
    exact = (logits / 3.0).softmax(-1)
    stored = StoredTeacher.__new__(StoredTeacher)
    stored.path, stored.rest, stored.temperature, stored.classes_in_all = "x", "spread", 3.0, small.VOCABULARY
    stored.values, stored.classes, stored.others = most_probable(logits, 4, 3.0)
    stored.labels, stored.ends = torch.zeros(50, dtype=torch.long), torch.arange(51)
    said = stored.targets(torch.arange(50), torch.zeros(50, 1, dtype=torch.long))
    target = (said / 3.0).softmax(-1)
    torch.testing.assert_close(target.gather(-1, stored.classes), exact.gather(-1, stored.classes))
    others = target.scatter(-1, stored.classes, 0)
    torch.testing.assert_close(others.sum(-1), 1 - exact.gather(-1, stored.classes).sum(-1))
    assert (others.amax(-1) - others.sum(-1) / (small.VOCABULARY - 4)).abs().max() < 1e-6
    stored.rest = "drop"
    top = stored.targets(torch.arange(50), torch.zeros(50, 1, dtype=torch.long))
    dropped = torch.zeros_like(exact).scatter(-1, top.classes, (top.values / 3.0).softmax(-1))
    distances = [(each - exact).abs().sum(-1).mean() for each in (target, dropped)]
    assert distances[0] < 0.5 * distances[1]


def left_padded(examples):
    """Batches in which every second one is padded on the left, and all by one position more than they need."""
    padded = {name: [] for name in examples[0]}
    fill = {"input_ids": 0, "attention_mask": 0, "labels": -100}
    for place, example in enumerate(examples):
        for name, column in example.items():
            if name == ROW:
                padded[name].append(torch.tensor(column))
                continue
            more = column.new_full((1,), fill[name])
            padded[name].append(torch.cat([more, column] if place % 2 else [column, more]))
    return {name: torch.stack(columns) for name, columns in padded.items()}


def test_positions_are_found_by_their_labels(tmp_path):
    teacher, data = small.causal(2), small.sentences(ignored=0.2)
    data.columns["labels"][:, 0] = -100  # the first has no position before it that could predict it
    path = tmp_path / "teacher.safetensors"
    stored = store_teacher(teacher, data, path, k=small.VOCABULARY, temperature=2.0)
    batch = left_padded([{**data[place], ROW: place} for place in (5, 3, 8)])
    found = stored.targets(batch[ROW], batch["labels"][:, 1:]).reshape(3, -1, small.VOCABULARY)
    with torch.no_grad():
        logits = teacher(data.columns["input_ids"][[5, 3, 8]]).logits
    for row, place in enumerate((5, 3, 8)):
        labels = data.columns["labels"][place]
        counted = labels[1:] != -100
        exact = (logits[row, :-1][counted] / 2).log_softmax(-1)
        inside = batch["labels"][row, 1:] != -100
        torch.testing.assert_close(found[row][inside] / 2, exact, rtol=2e-3, atol=2e-3)


def test_another_dataset_than_the_stored_one_is_refused(tmp_path):
    teacher, data = small.causal(2), small.sentences()
    path = tmp_path / "teacher.safetensors"
    assert repr(store_teacher(teacher, data, path, k=4, temperature=2.0)).endswith(
        "examples=16, k=4, temperature=2)"
    )
    with pytest.raises(ValueError, match="have changed since"):
        trainer_of(tmp_path, path, small.sentences(seed=9)).train()
    with pytest.raises(ValueError, match="14 examples, but the stored teacher has 16"):
        trainer_of(tmp_path, path, small.sentences(count=14))
    with pytest.raises(ValueError, match="stored at temperature 2, but the loss has 4"):
        trainer_of(tmp_path, path, data, loss=Distillation(4.0))
    with pytest.raises(ValueError, match="match='logits'"):
        trainer_of(tmp_path, path, data, loss=Distillation(2.0, match="logits"))
    with pytest.raises(ValueError, match="'spread' or 'drop', not 'lose'"):
        StoredTeacher(path, rest="lose")


def test_evaluation_without_a_teacher_is_cross_entropy(tmp_path):
    teacher, data, held_out = small.causal(2), small.sentences(), small.sentences(seed=5)
    store_teacher(teacher, data, tmp_path / "t.safetensors", k=4, temperature=2.0)
    args = {"per_device_eval_batch_size": 16, "eval_dataset": held_out}
    stored = trainer_of(tmp_path, tmp_path / "t.safetensors", data, **args)
    plain = Trainer(
        small.causal(1), small.arguments(tmp_path, per_device_eval_batch_size=16), eval_dataset=held_out
    )
    assert stored.evaluate()["eval_loss"] == pytest.approx(plain.evaluate()["eval_loss"], rel=1e-5)


def test_a_student_of_another_vocabulary_is_refused(tmp_path):
    trainer = trainer_of(tmp_path, small.causal(2, vocabulary=23), small.sentences())
    with pytest.raises(ValueError, match="same classes"):
        trainer.train()


def test_what_is_no_distillation_is_refused(tmp_path):
    for options, word in (
        ({"loss": LabelSmoothing(0.1)}, "loss_function"),
        ({"compute_loss_func": loss_function(LabelSmoothing(0.1))}, "leave yours out"),
    ):
        with pytest.raises((TypeError, ValueError), match=word):
            DistillationTrainer(small.causal(), small.arguments(tmp_path), teacher=small.causal(2), **options)


@pytest.mark.parametrize("teacher", [None, [1.0], {}])
def test_what_is_no_teacher_is_refused(teacher, tmp_path):
    with pytest.raises(TypeError, match=f"teacher must be a model or .* not {type(teacher).__name__}"):
        trainer_of(tmp_path, teacher, small.sentences())


def test_a_stored_teacher_is_asked_wherever_the_dataset_is_given(tmp_path):
    """By its place among the arguments as by its name; and a batch that lost its places is refused, not trained on."""
    teacher, data = small.causal(2), small.sentences()
    path = tmp_path / "t.safetensors"
    store_teacher(teacher, data, path, k=4, temperature=2.0)
    named = trainer_of(tmp_path, path, data)
    named.train()
    arguments = (small.causal(1), small.arguments(tmp_path), default_data_collator, data)
    placed = DistillationTrainer(*arguments, teacher=path, loss=Distillation.hinton(**HINTON))
    placed.train()
    assert small.losses_of(placed) == small.losses_of(named)

    def forgetful(examples):
        batch = default_data_collator(examples)
        return {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}

    with pytest.raises(ValueError, match="The collator must keep that column"):
        trainer_of(tmp_path, path, data, data_collator=forgetful).train()


def test_a_teacher_is_not_asked_for_what_cannot_be_kept(tmp_path):
    def ask(data=None, path=tmp_path / "t.safetensors", **options):
        return store_teacher(small.causal(2), data or small.sentences(4), path, **options)

    with pytest.raises(ValueError, match="k must be a whole number of classes, at least 1, not 0"):
        ask(k=0)
    for temperature in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="temperature must be a positive number"):
            ask(temperature=temperature)
    unlabelled = small.sentences(4)
    del unlabelled.columns["labels"]
    with pytest.raises(ValueError, match="no labels, only input_ids, attention_mask"):
        ask(unlabelled)
    assert not list(tmp_path.iterdir())
    assert len(ask(path=tmp_path / "new" / "deep" / "t.safetensors")) == 4


def test_a_teacher_trained_with_label_smoothing(tmp_path):
    """One line each: a smoothed teacher, then its student; the student comes nearer to it."""
    teacher, data = small.classifier(3), small.labelled(64)
    args = {"max_steps": 60, "learning_rate": 0.02, "optim": "adamw_torch"}
    smoothing = loss_function(LabelSmoothing(0.2))
    Trainer(
        teacher, small.arguments(tmp_path, **args), train_dataset=data, compute_loss_func=smoothing
    ).train()

    def distance(student):
        with torch.no_grad():
            inputs = data.columns["input_ids"]
            p, q = (each.eval()(inputs).logits.softmax(-1) for each in (teacher, student))
        return (p - q).abs().sum(-1).mean()

    student = small.classifier(4)
    before = distance(student)
    trainer_of(tmp_path, teacher, data, student, loss=Distillation(1.0), **args).train()
    assert distance(student) < 0.2 * before
