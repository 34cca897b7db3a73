"""From what a model of transformers gives to rows: logits (N, K) and one label for each, shifted where they must be."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from softtargets.arrays import resolution_advice

# What the class of a model's output says about its labels. Position t of a causal model predicts label t + 1; a
# sequence-to-sequence model's decoder is given shifted tokens instead, so that its labels are aligned.
_SHIFTED = ("CausalLM",)
_ALIGNED = (
    "Seq2SeqLM",
    "Seq2SeqMoE",
    "MaskedLM",
    "TokenClassifier",
    "SequenceClassifier",
    "ImageClassifier",
    "MultipleChoice",
    "NextSentence",
    "SemanticSegmenter",
)
_QUESTION = (
    "pass shift=True if position t predicts label t + 1 (causal language models), or shift=False if labels are "
    "aligned with logits (sequence to sequence, masked language models, token classification)"
)


# How a line comes between a model and its loss, or its metrics, in somebody else's training loop.
IN_TRAINER = (
    ". In Trainer, do that in a compute_loss_func of your own, which calls "
    "function(logits, labels, num_items_in_batch), and in preprocess_logits_for_metrics"
)


def unwrapped(model: nn.Module) -> nn.Module:
    """The model whose ``forward`` says what it takes, inside of wrappers that take anything and hand it on.

    PEFT's models have ``get_base_model``, but those of mixed adapters keep theirs two attributes deep; what
    ``torch.compile`` makes has ``_orig_mod``, and DataParallel, DistributedDataParallel, FSDP and DeepSpeed have
    ``module``. Wrappers may be inside of each other. A model of one's own without these is no wrapper, though it may
    name no input: it may read any of them.

    >>> unwrapped(nn.DataParallel(nn.Linear(2, 2)))
    Linear(in_features=2, out_features=2, bias=True)
    """
    while (inside := _inside(model)) is not None:
        model = inside
    return model


def _inside(model: nn.Module) -> nn.Module | None:
    found: Any = None
    if callable(base := getattr(type(model), "get_base_model", None)):
        found = base(model)
    elif not _names(inspect.signature(model.forward).parameters):
        names = ["_orig_mod", "_fsdp_wrapped_module", "module"]
        if type(model).__module__.startswith("peft."):
            names += ["base_model", "model"]
        # Of its own: PEFT looks in the model inside for what a wrapper lacks, where `base_model` is a part of it.
        found = next((one for name in names if (one := model._modules.get(name)) is not None), None)
    return found if isinstance(found, nn.Module) and found is not model else None


def _names(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    some = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, one in parameters.items() if one.kind not in some]


def named_inputs(model: nn.Module) -> Mapping[str, inspect.Parameter]:
    """What the ``forward`` of a model names; of a model that is wrapped, that of the model inside."""
    return inspect.signature(unwrapped(model).forward).parameters


def accepted(model: nn.Module, inputs: dict[str, Any]) -> dict[str, Any]:
    """Those of the inputs that a model takes: all if it takes any; of a model that is wrapped, the model inside.

    >>> from torch import nn
    >>> accepted(nn.Linear(2, 2), {"input": 1, "idx": 2})
    {'input': 1}
    """
    known = named_inputs(model)
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
        return inputs
    # What PEFT takes for itself, such as the names of adapters, never reaches the model inside.
    own: Any = getattr(model, "special_peft_forward_args", ())
    return {name: value for name, value in inputs.items() if name in known or name in own}


def logits_of(outputs: Any) -> Tensor:
    """The logits of a ModelOutput, dictionary or tuple, in which a loss may come first.

    >>> import torch
    >>> logits_of((torch.tensor(0.7), torch.zeros(2, 5))).shape
    torch.Size([2, 5])
    """
    if isinstance(outputs, Mapping):
        found = outputs.get("logits")
        if found is None:
            others = ", ".join(name for name, value in outputs.items() if value is not None)
            raise ValueError(
                f"the model's output has no logits, only {others or 'nothing'}: the losses of softtargets "
                "are for models that give one logit for each class"
            )
    elif isinstance(outputs, tuple | list):
        tensors = [each for each in outputs if isinstance(each, Tensor) and each.dim() > 0]
        if not tensors:
            raise ValueError("the model's output is a tuple without logits")
        found = tensors[0]
    else:
        found = getattr(outputs, "logits", outputs)
    if not isinstance(found, Tensor):
        raise TypeError(f"logits must be a tensor, not {type(found).__name__}")
    if found.dim() < 2:
        raise ValueError(f"logits must have a dimension for the classes; their shape is {tuple(found.shape)}")
    return found


def shifts(outputs: Any, logits: Tensor, said: bool | None) -> bool:
    """Whether position t of these outputs predicts label t + 1: as said, else as the class of the outputs tells.

    >>> import torch
    >>> from transformers.modeling_outputs import CausalLMOutput, MaskedLMOutput
    >>> [shifts(kind(), torch.zeros(1, 4, 9), None) for kind in (CausalLMOutput, MaskedLMOutput)]
    [True, False]
    """
    if said is not None:
        return said
    if logits.dim() == 2:
        return False
    name = type(outputs).__name__
    if any(part in name for part in _ALIGNED) or logits.dim() > 3:
        return False
    if any(part in name for part in _SHIFTED):
        return True
    raise ValueError(
        f"logits of shape {tuple(logits.shape)} from {name} do not show whether labels must be shifted: {_QUESTION}"
    )


def aligned(logits: Tensor, labels: Tensor, shift: bool) -> tuple[Tensor, Tensor]:
    """Logits and labels of the same positions, both with one position fewer if they are shifted."""
    if not shift:
        return logits, labels
    if logits.dim() != 3:
        raise ValueError(f"shift=True needs logits (examples, positions, classes), not {tuple(logits.shape)}")
    return logits[:, :-1], labels[:, 1:]


def rows(logits: Tensor, labels: Tensor, probabilities: bool = False) -> tuple[Tensor, Tensor]:
    """Logits (N, K) and labels (N,), or (N, K) if they are `probabilities`, or a refusal that says why.

    Classes are the last dimension; of images, whose logits are (N, K, height, width), the second.

    >>> import torch
    >>> [x.shape for x in rows(torch.zeros(2, 5, 9), torch.zeros(2, 5, dtype=torch.long))]
    [torch.Size([10, 9]), torch.Size([10])]
    >>> rows(torch.zeros(2, 3), torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: labels are floating-point numbers, as in multi-label models; softtargets' losses ...
    """
    if not isinstance(labels, Tensor):
        raise TypeError(f"labels must be a tensor, not {type(labels).__name__}")
    given, advice = tuple(logits.shape), resolution_advice(logits.shape, labels.shape)
    if logits.dim() == 4:
        logits = logits.movedim(1, -1)
        labels = labels.movedim(1, -1) if labels.dim() == 4 else labels
    classes = logits.shape[-1]
    if classes == 1:
        raise ValueError(
            "logits have one column, as in regression or binary classification with a single logit; softtargets' "
            "losses need one logit for each class (num_labels=2 for two classes)"
        )
    if labels.is_floating_point() and not probabilities:
        raise ValueError(
            "labels are floating-point numbers, as in multi-label models; softtargets' losses are for one label per "
            "example. If each row is a distribution over classes, set probabilities=True"
        )
    if labels.is_floating_point():
        fits = labels.shape == logits.shape
        wanted = tuple(logits.shape)
        labels = labels.reshape(-1, classes) if fits else labels
    else:
        fits = labels.shape in (logits.shape[:-1], (*logits.shape[:-1], 1))
        wanted = tuple(logits.shape[:-1])
        labels = labels.reshape(-1) if fits else labels
    if not fits:
        several = "; softtargets' losses are not for several labels per example (0 or 1 for each class)"
        raise ValueError(
            f"labels must have shape {wanted} for logits of shape {given}, not {tuple(labels.shape)}"
            + (f"{advice}{IN_TRAINER}" if advice else "")
            + several * (labels.shape == logits.shape)
        )
    return logits.reshape(-1, classes), labels.to(logits.device)
