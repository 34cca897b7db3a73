"""The loss function, called by hand and by the real Trainer."""

from __future__ import annotations

import re
from inspect import signature

import pytest
import torch
from torch.nn import functional as F
from transformers import (
    EvalPrediction,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    Trainer,
    TrainingArguments,
)
from transformers.modeling_outputs import (
    CausalLMOutput,
    MaskedLMOutput,
    Seq2SeqLMOutput,
    SequenceClassifierOutput,
)
from transformers.trainer_pt_utils import LabelSmoother

from integrations.huggingface import small
from softtargets.integrations.huggingface import Metrics, loss_function
from softtargets.losses import (
    LABO,
    REGULARISERS,
    CrossEntropy,
    Distillation,
    ForwardCorrection,
    KnowledgeRefinery,
    LabelSmoothing,
    OnlineLabelSmoothing,
)

CLASSES = 7


def tokens(seed=0, dtype=torch.float64, shape=(3, 5)):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*shape, CLASSES, generator=generator, dtype=torch.float64).mul(2).to(dtype)
    labels = torch.randint(CLASSES, shape, generator=generator)
    labels[0, 2:] = -100
    return logits, labels


def smoothed(logits, labels, alpha):
    """Label smoothing of rows that count, position by position, from its definition."""
    losses = []
    for z, y in zip(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), strict=True):
        if y == -100:
            continue
        target = torch.full_like(z, alpha / len(z))
        target[y] += 1 - alpha
        losses.append(-(target * z.log_softmax(-1)).sum())
    return torch.stack(losses)


def test_causal_labels_are_shifted_and_others_are_not():
    logits, labels = tokens()
    function = loss_function(LabelSmoothing(0.1))
    shifted = smoothed(logits[:, :-1], labels[:, 1:], 0.1).mean()
    straight = smoothed(logits, labels, 0.1).mean()
    torch.testing.assert_close(function(CausalLMOutput(logits=logits), labels), shifted)
    for kind in (MaskedLMOutput, Seq2SeqLMOutput):
        torch.testing.assert_close(function(kind(logits=logits), labels), straight)


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("form", ["dictionary", "tuple", "tuple with a loss", "tensor"])
def test_what_does_not_tell_its_kind_must_be_told(shift, form):
    logits, labels = tokens()
    outputs = {
        "dictionary": {"logits": logits},
        "tuple": (logits, (logits,)),
        "tuple with a loss": (torch.tensor(1.0), logits),
        "tensor": logits,
    }[form]
    with pytest.raises(ValueError, match="shift=True if position t predicts label t \\+ 1"):
        loss_function(LabelSmoothing(0.1))(outputs, labels)
    pair = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
    found = loss_function(LabelSmoothing(0.1), shift=shift)(outputs, labels)
    torch.testing.assert_close(found, smoothed(*pair, 0.1).mean())


@pytest.mark.parametrize("count", [17, torch.tensor(17), torch.tensor([17])])
def test_the_sum_is_divided_by_what_trainer_counted(count):
    logits, labels = tokens()
    found = loss_function(LabelSmoothing(0.1), shift=False)((logits,), labels, num_items_in_batch=count)
    torch.testing.assert_close(found, smoothed(logits, labels, 0.1).sum() / 17)


@pytest.mark.parametrize("averaged", [True, False])
def test_several_gpus_with_data_parallel_train_as_one_does(averaged, tmp_path):
    """Without a GPU, DataParallel hands everything on; Trainer counts and multiplies as it does with two."""

    def trained(gpus):
        options = {"per_device_train_batch_size": 8 // gpus, "max_grad_norm": 0.0, "learning_rate": 0.5}
        args = small.arguments(tmp_path, average_tokens_across_devices=averaged, **options)
        args._n_gpu = gpus
        trainer = Trainer(
            small.classifier(),
            args,
            train_dataset=small.labelled(24),
            compute_loss_func=loss_function(LabelSmoothing(0.1)),
        )
        trainer.train()
        return trainer

    one, two = trained(1), trained(2)
    assert two.args.train_batch_size == one.args.train_batch_size == 8
    assert small.losses_of(two) == pytest.approx(small.losses_of(one), rel=1e-5)
    torch.testing.assert_close(small.weights_of(two.model), small.weights_of(one.model))


def test_a_batch_without_labels_that_count_adds_nothing():
    logits, labels = tokens()
    logits.requires_grad_()
    function = loss_function(LabelSmoothing(0.1), shift=False)
    found = function((logits,), torch.full_like(labels, -100), num_items_in_batch=torch.tensor(0))
    found.backward()
    assert found == 0
    assert not logits.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("make", [CrossEntropy, lambda: LabelSmoothing(0.1), LABO])
def test_half_precision_logits_have_a_loss_in_single_precision(dtype, make):
    logits, labels = tokens(dtype=dtype, shape=(400, 60))
    logits = (logits * 4).requires_grad_()
    exact = logits.detach().double().requires_grad_()
    function = loss_function(make(), shift=False)
    loss, wanted = (function((each,), labels, num_items_in_batch=24_000) for each in (logits, exact))
    assert loss.dtype == torch.float32  # the sum, about 10^5, is above all of fp16
    torch.testing.assert_close(loss.double(), wanted, rtol=1e-6, atol=0)
    loss.backward()
    wanted.backward()
    assert logits.grad.dtype == dtype
    # Gradients below 2^-24 are no numbers of fp16; and p - 1 is rounded in single precision.
    least = 2**-24 if dtype == torch.float16 else 1e-11
    torch.testing.assert_close(logits.grad.double(), exact.grad, rtol=2**-7, atol=least)


def made(name):
    options = {"classes": CLASSES} if name in ("online_label_smoothing", "knowledge_refinery") else {}
    if name == "forward_correction":
        return ForwardCorrection(torch.eye(CLASSES) * 0.8 + 0.2 / CLASSES)
    return REGULARISERS[name](**options)


@pytest.mark.parametrize("name", [name for name in REGULARISERS if name != "distillation"])
def test_every_loss_without_a_teacher_is_itself_on_the_rows_that_count(name):
    logits, labels = tokens()
    counts = labels[:, 1:] != -100
    loss = made(name)
    torch.manual_seed(3)
    wanted = loss(logits[:, :-1][counts], labels[:, 1:][counts])
    function = loss_function(made(name), shift=True)
    function.on_init_end(small.arguments("unused"), None, None)
    assert function.loss.reduction == "mean"
    torch.manual_seed(3)
    found = function((logits,), labels, num_items_in_batch=counts.sum())
    if name in ("beta_smoothing", "disturb_label"):  # draws for ignored rows come in between
        assert found > 0
    else:
        torch.testing.assert_close(found, wanted)
    assert function.loss.reduction == "mean"


def test_what_is_no_single_label_is_refused():
    function = loss_function(CrossEntropy())
    logits = torch.zeros(4, 3)
    with pytest.raises(ValueError, match="multi-label"):
        function(SequenceClassifierOutput(logits=logits), torch.zeros(4, 3))
    with pytest.raises(ValueError, match="regression"):
        function(SequenceClassifierOutput(logits=logits[:, :1]), torch.zeros(4))
    with pytest.raises(ValueError, match=r"labels must have shape \(4,\)"):
        function(SequenceClassifierOutput(logits=logits), torch.zeros(4, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="no logits, only start_logits, end_logits"):
        function({"start_logits": logits, "end_logits": logits}, torch.zeros(4, dtype=torch.long))
    with pytest.raises(ValueError, match="there are no labels"):
        function({"logits": logits}, None)


def test_outputs_without_logits_name_what_there_is():
    """Of a model whose loss is fused with its last layer, such as Liger's, logits are there but None."""
    with pytest.raises(ValueError, match="has no logits, only loss, hidden: the losses"):
        loss_function(LabelSmoothing(0.1))(
            {"loss": torch.tensor(1.0), "logits": None, "hidden": torch.zeros(2, 3)}, torch.tensor([0, 1])
        )
    with pytest.raises(ValueError, match="has no logits, only nothing"):
        loss_function(LabelSmoothing(0.1))({"logits": None}, torch.tensor([0, 1]))


def test_several_labels_of_an_example_are_refused_by_their_name():
    with pytest.raises(
        ValueError, match=r"not \(2, 3\); softtargets' losses are not for several labels per example"
    ):
        loss_function(LabelSmoothing(0.1))(
            {"logits": torch.zeros(2, 3)}, torch.tensor([[1, 0, 1], [0, 1, 0]])
        )


def test_distributions_are_labels_if_one_says_so():
    logits, target = torch.randn(4, 3), torch.rand(4, 3).softmax(-1)
    found = loss_function(CrossEntropy(), probabilities=True)(
        {"logits": logits}, target, num_items_in_batch=4
    )
    torch.testing.assert_close(found, F.cross_entropy(logits, target))


def test_labels_in_a_column_and_images():
    logits, labels = torch.randn(4, 3), torch.tensor([[0], [2], [1], [-100]])
    found = loss_function(CrossEntropy())({"logits": logits}, labels)
    torch.testing.assert_close(found, F.cross_entropy(logits, labels[:, 0]))
    pixels, labels = torch.randn(2, 3, 4, 5), torch.randint(3, (2, 4, 5))
    torch.testing.assert_close(
        loss_function(CrossEntropy())({"logits": pixels}, labels), F.cross_entropy(pixels, labels)
    )


def test_a_loss_by_its_name_is_that_loss():
    """One import and one line: nothing of softtargets.losses is needed beside it."""
    torch.manual_seed(0)
    logits, labels = torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4, -100])
    outputs = {"logits": logits}
    named = loss_function("label_smoothing", alpha=0.2)
    assert named(outputs, labels) == loss_function(LabelSmoothing(0.2))(outputs, labels)
    assert repr(loss_function("online_label_smoothing", classes=5).loss) == repr(
        OnlineLabelSmoothing(classes=5)
    )
    with pytest.raises(ValueError, match=r"no loss 'label_smothing'.*label_smoothing"):
        loss_function("label_smothing")
    with pytest.raises(ValueError, match=r"needs .*DistillationTrainer"):
        loss_function("distillation")
    with pytest.raises(TypeError, match="alpha would be for a loss that is given by its name"):
        loss_function(LabelSmoothing(), alpha=0.2)


def test_losses_that_cannot_be_are_refused_when_they_are_made():
    with pytest.raises(ValueError, match="DistillationTrainer"):
        loss_function(Distillation())
    with pytest.raises(ValueError, match="reduction='mean', not 'sum'"):
        loss_function(LabelSmoothing(reduction="sum"))
    with pytest.raises(ValueError, match="ignore_index=-100, not 0"):
        loss_function(LabelSmoothing(ignore_index=0))
    with pytest.raises(TypeError, match="not CrossEntropyLoss"):
        loss_function(torch.nn.CrossEntropyLoss())
    with pytest.warns(UserWarning, match="are not in Trainer's optimiser"):
        loss_function(LabelSmoothing(torch.nn.Parameter(torch.tensor(0.1))))


# ---- Trainer's own label smoothing

# Whether it divides by the number of labels of a step, as a loss function does; in transformers 4 it does not.
COUNTS = "num_items_in_batch" in signature(LabelSmoother.__call__).parameters


@pytest.mark.parametrize("counted", [None, 23])
@pytest.mark.parametrize("shift", [True, False])
def test_equal_to_trainers_label_smoother(counted, shift):
    logits, labels = tokens(dtype=torch.float32)
    if counted is not None and not COUNTS:
        pytest.skip("this LabelSmoother does not know how many labels a step has")
    told = {"num_items_in_batch": counted} if COUNTS else {}
    theirs = LabelSmoother(0.3)({"logits": logits.double()}, labels, shift_labels=shift, **told)
    ours = loss_function(LabelSmoothing(0.3), shift=shift)({"logits": logits.double()}, labels, counted)
    torch.testing.assert_close(
        ours, theirs, rtol=1e-6, atol=0
    )  # theirs adds up the classes in single precision


MODELS = {
    "causal": (small.causal, small.sentences),
    "masked": (small.masked, small.sentences),
    "classification": (small.classifier, small.labelled),
}


@pytest.mark.parametrize("kind", MODELS)
def test_trained_as_with_trainers_own_label_smoothing(kind, tmp_path):
    make, data = MODELS[kind]
    if kind == "causal" and not COUNTS:
        pytest.skip("this LabelSmoother does not count the first label of a sentence, as Trainer does")

    def trained(**options):
        trainer = Trainer(
            make(), small.arguments(tmp_path, **options.pop("args", {})), train_dataset=data(), **options
        )
        trainer.train()
        return small.losses_of(trainer), small.weights_of(trainer.model)

    losses, weights = trained(args={"label_smoothing_factor": 0.1})
    ours, own_weights = trained(compute_loss_func=loss_function(LabelSmoothing(0.1)))
    assert ours == pytest.approx(losses, rel=2e-6)
    torch.testing.assert_close(own_weights, weights, rtol=1e-5, atol=1e-7)
    plain, _ = trained()
    assert ours != pytest.approx(plain, rel=2e-5)


def means_of_parts(logits, labels, parts):
    return torch.stack(
        [smoothed(*part, 0.1).mean() for part in zip(logits.chunk(parts), labels.chunk(parts), strict=True)]
    )


def test_where_trainers_own_is_another_mean(tmp_path):
    """Trainer counts labels for a loss function, but not for its own smoothing of a model that takes no loss arguments.

    Theirs is then the mean of the means of accumulated batches, ours that of all their labels.
    """
    if not hasattr(TrainingArguments, "train_sampling_strategy"):
        pytest.skip("this Trainer cannot be told to take examples in their order")
    data, model = small.sentences(), small.masked()
    with torch.no_grad():
        logits = model(data.columns["input_ids"][:8]).logits
    labels = data.columns["labels"][:8]

    def first_loss(**options):
        args = small.arguments(
            tmp_path,
            max_steps=1,
            gradient_accumulation_steps=2,
            train_sampling_strategy="sequential",
            **options.pop("args", {}),
        )
        fresh = small.masked()
        fresh.accepts_loss_kwargs = False
        trainer = Trainer(fresh, args, train_dataset=data, **options)
        trainer.train()
        return small.losses_of(trainer)[0]

    theirs = first_loss(args={"label_smoothing_factor": 0.1})
    ours = first_loss(compute_loss_func=loss_function(LabelSmoothing(0.1)))
    assert theirs == pytest.approx(means_of_parts(logits, labels, 2).mean().item(), rel=1e-5)
    assert ours == pytest.approx(smoothed(logits, labels, 0.1).mean().item(), rel=1e-5)
    assert abs(ours - theirs) > 1e-4


def test_where_trainers_own_is_rounded_to_the_precision_of_the_logits():
    logits, labels = tokens(dtype=torch.bfloat16, shape=(40, 50))
    exact = smoothed(logits.double(), labels, 0.1).mean()
    theirs = LabelSmoother(0.1)({"logits": logits}, labels)
    ours = loss_function(LabelSmoothing(0.1), shift=False)({"logits": logits}, labels)
    assert abs(ours - exact) < 5e-7 * exact
    assert abs(theirs - exact) > 3e-5 * exact


def test_the_number_of_labels_is_trainers(tmp_path):
    """Of a model whose class does not say that its loss is causal Trainer also counts labels that nothing predicts."""
    data, model = small.sentences(4, ignored=0), small.causal()
    with torch.no_grad():
        logits = model(data.columns["input_ids"]).logits
    trainer = Trainer(
        model,
        small.arguments(tmp_path, max_steps=1),
        train_dataset=data,
        compute_loss_func=loss_function(LabelSmoothing(0.1)),
    )
    counted = 4 * 8 if getattr(trainer, "_loss_shifts_labels", False) else 4 * 9
    trainer.train()
    total = smoothed(logits[:, :-1], data.columns["labels"][:, 1:], 0.1).sum().item()
    assert small.losses_of(trainer) == pytest.approx([total / counted], rel=1e-5)


def test_sequence_to_sequence_in_trainer(tmp_path):
    data = small.sentences(4)
    labels = data.columns["labels"]
    given = labels.masked_fill(labels == -100, 0)
    starts = torch.cat([torch.zeros(len(given), 1, dtype=torch.long), given[:, :-1]], 1)
    data.columns["decoder_input_ids"] = starts
    model = small.sequence_to_sequence()
    with torch.no_grad():
        logits = model(**{name: column for name, column in data.columns.items() if name != "labels"}).logits
    trainer = Trainer(
        model,
        small.arguments(tmp_path, max_steps=1),
        train_dataset=data,
        compute_loss_func=loss_function(LabelSmoothing(0.1)),
    )
    trainer.train()
    assert small.losses_of(trainer) == pytest.approx([smoothed(logits, labels, 0.1).mean().item()], rel=1e-5)


@pytest.mark.parametrize("name", ["label_smoothing", "labo", "focal", "max_sup", "confidence_penalty"])
def test_accumulated_gradients_are_those_of_one_large_batch(name, tmp_path):
    def trained(**sizes):
        trainer = Trainer(
            small.causal(),
            small.arguments(tmp_path, **sizes),
            train_dataset=small.sentences(),
            compute_loss_func=loss_function(made(name)),
        )
        trainer.train()
        return small.losses_of(trainer), small.weights_of(trainer.model)

    losses, weights = trained(per_device_train_batch_size=8)
    parts, same = trained(per_device_train_batch_size=2, gradient_accumulation_steps=4)
    assert parts == pytest.approx(losses, rel=1e-5)
    torch.testing.assert_close(same, weights, rtol=1e-4, atol=1e-6)


def test_token_classification_evaluated_by_trainer(tmp_path):
    data, model = small.sentences(ignored=0.3), small.tagger()
    data.columns["labels"] = torch.where(data.columns["labels"] == -100, -100, data.columns["labels"] % 5)
    trainer = Trainer(
        model,
        small.arguments(tmp_path, per_device_eval_batch_size=16),
        eval_dataset=data,
        compute_loss_func=loss_function(LabelSmoothing(0.1)),
    )
    with torch.no_grad():
        logits = model(data.columns["input_ids"]).logits
    wanted = smoothed(logits, data.columns["labels"], 0.1).mean().item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(wanted, rel=1e-5)


# ---- Losses that learn


def learning(tmp_path, loss, steps=8, **options):
    function = loss_function(loss)
    trainer = Trainer(
        small.classifier(),
        small.arguments(tmp_path, max_steps=steps, **options),
        train_dataset=small.labelled(),
        eval_dataset=small.labelled(seed=1),
        compute_loss_func=function,
        callbacks=[function],
    )
    return trainer, function


def test_a_loss_that_learns_is_refused_without_its_callback(tmp_path):
    trainer, function = learning(tmp_path, OnlineLabelSmoothing(3))
    alone = Trainer(
        small.classifier(),
        small.arguments(tmp_path),
        train_dataset=small.labelled(),
        compute_loss_func=loss_function(OnlineLabelSmoothing(3)),
    )
    with pytest.raises(RuntimeError, match=r"callbacks=\[function\]"):
        alone.train()
    trainer.train()
    assert not torch.equal(function.loss.table, torch.full((3, 3), 1 / 3))


def test_nothing_is_learnt_in_evaluation(tmp_path):
    trainer, function = learning(tmp_path, KnowledgeRefinery(3), steps=2)
    trainer.train()
    before = function.loss.table.clone()
    assert before.any()
    trainer.evaluate()
    assert torch.equal(function.loss.table, before)


def test_the_callback_tells_of_steps_and_epochs(tmp_path):
    told = []

    class Telling(LabelSmoothing):
        def after_step(self, model):
            told.append(type(model).__name__)

        def end_epoch(self):
            told.append("epoch")

    trainer, _ = learning(tmp_path, Telling(), steps=4, gradient_accumulation_steps=2)
    trainer.train()
    step = "BertForSequenceClassification"
    assert told == [step, step, "epoch", step, step, "epoch"]


def test_the_state_of_a_loss_is_resumed_with_its_checkpoint(tmp_path):
    def refinery():  # whose table is moved by every step, so that lost ones are seen
        return KnowledgeRefinery(3, table_lr=1.0)

    # Batches of all examples: whether Trainer goes on in the order of a whole training depends on its version.
    every = {"per_device_train_batch_size": 16}
    whole, function = learning(tmp_path / "whole", refinery(), steps=12, **every)
    whole.train()
    saving = {"save_strategy": "steps", "save_steps": 6, **every}
    first, half = learning(tmp_path / "parts", refinery(), steps=6, **saving)
    first.train()
    second, resumed = learning(tmp_path / "parts", refinery(), steps=12, **saving)
    second.train(resume_from_checkpoint=True)
    torch.testing.assert_close(resumed.loss.table, function.loss.table)
    torch.testing.assert_close(small.weights_of(second.model), small.weights_of(whole.model))
    assert (half.loss.table - function.loss.table).abs().max() > 1e-3


def test_a_resumed_training_without_the_state_says_so(tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 6}
    first, _ = learning(tmp_path, OnlineLabelSmoothing(3), steps=6, **saving)
    first.train()
    (tmp_path / "checkpoint-6" / "softtargets_loss.safetensors").unlink()
    second, _ = learning(tmp_path, OnlineLabelSmoothing(3), steps=8, **saving)
    with pytest.warns(UserWarning, match="unless you have loaded it, it starts from scratch"):
        second.train(resume_from_checkpoint=True)


def test_the_state_is_found_in_the_checkpoint_that_the_arguments_name(tmp_path):
    def refined(directory, steps, checkpoint=None):
        options = {"per_device_train_batch_size": 16, "save_strategy": "steps", "save_steps": 6}
        loss = KnowledgeRefinery(3, table_lr=1.0)
        trainer, _ = learning(tmp_path / directory, loss, steps, resume_from_checkpoint=checkpoint, **options)
        trainer.train(resume_from_checkpoint=checkpoint)
        return loss.table

    half, whole = refined("one", 6), refined("two", 12)
    resumed = refined("three", 12, str(tmp_path / "one" / "checkpoint-6"))
    torch.testing.assert_close(resumed, whole)
    assert (half - whole).abs().max() > 1e-3


def test_trainers_own_smoothing_beside_ours_is_refused(tmp_path):
    with pytest.raises(ValueError, match="label_smoothing_factor=0\\.1 has no effect"):
        learning(tmp_path, LabelSmoothing(0.1), label_smoothing_factor=0.1)


def segmenter(classes=4):
    """A real SegFormer, whose logits have a quarter of the height and width of its images."""
    torch.manual_seed(0)
    sizes = {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 1, 1]}
    rest = {
        "sr_ratios": [1, 1, 1, 1],
        "decoder_hidden_size": 8,
        "classifier_dropout_prob": 0.0,
        "num_labels": classes,
    }
    return SegformerForSemanticSegmentation(SegformerConfig(**sizes, **rest)).eval()


def test_logits_of_smaller_images_are_refused_with_the_line_that_enlarges_them():
    model, images = segmenter(), torch.randn(2, 3, 32, 32)
    labels = torch.randint(4, (2, 32, 32))
    labels[0, :5] = -100
    outputs = model(images)
    function = loss_function("label_smoothing", alpha=0.1)
    with pytest.raises(ValueError, match=r"for logits of shape \(2, 4, 8, 8\), not \(2, 32, 32\)") as refused:
        function(outputs, labels)
    assert "In Trainer, do that in a compute_loss_func of your own" in str(refused.value)
    line = re.search(r"first enlarge them, logits = (torch.*\))\. In Trainer", str(refused.value)).group(1)
    logits = eval(line, {"torch": torch, "logits": outputs.logits, "labels": labels})
    found = function(logits, labels, (labels != -100).sum())
    rows = logits.movedim(1, -1).reshape(-1, 4)
    assert float(found) == pytest.approx(
        float(torch.nn.functional.cross_entropy(rows, labels.reshape(-1), label_smoothing=0.1)), rel=1e-5
    )
    for measured in (Metrics().preprocess, lambda *pair: Metrics()(EvalPrediction(*pair))):
        with pytest.raises(ValueError, match="8 x 8 places and the labels 32 x 32"):
            measured(outputs.logits.detach(), labels)


def test_a_segmenter_is_trained_and_measured_at_the_size_of_its_labels(tmp_path):
    """As docs/integrations.md has it."""

    def enlarged(logits, labels):
        return F.interpolate(logits, size=labels.shape[-2:], mode="bilinear")

    labels = torch.randint(4, (8, 32, 32))
    labels[:, :3] = -100
    data = small.Examples(pixel_values=torch.randn(8, 3, 32, 32), labels=labels)
    function, metrics = loss_function("label_smoothing", alpha=0.1), Metrics()

    def compute_loss(outputs, labels, num_items_in_batch=None):
        return function(enlarged(outputs.logits, labels), labels, num_items_in_batch)

    trainer = Trainer(
        model := segmenter(),
        small.arguments(tmp_path, max_steps=1),
        train_dataset=data,
        eval_dataset=data,
        compute_loss_func=compute_loss,
        compute_metrics=metrics,
        preprocess_logits_for_metrics=lambda logits, labels: metrics.preprocess(
            enlarged(logits, labels), labels
        ),
    )
    trainer.train()
    found = trainer.evaluate()
    with torch.no_grad():
        logits = enlarged(model.eval()(data.columns["pixel_values"]).logits, labels)
    assert found["eval_accuracy"] == pytest.approx(
        float((logits.argmax(1) == labels)[labels != -100].double().mean())
    )
    assert found["eval_loss"] == pytest.approx(
        float(F.cross_entropy(logits, labels, label_smoothing=0.1)), rel=1e-4
    )
