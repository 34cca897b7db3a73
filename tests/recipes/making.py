"""Recipes for tests: every named part, a plain recipe, and strategies that draw any valid value of a field."""

from __future__ import annotations

import types
from dataclasses import fields
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

from softtargets.recipes import (
    BLEU,
    CIFAR10,
    CIFAR100,
    CNN,
    CSKD,
    CUB200,
    EMNIST,
    IWSLT14,
    IWSLT17,
    LABO,
    MLP,
    MNIST,
    SGD,
    WMT14,
    Adam,
    AdamW,
    Affine,
    AlexNet,
    AntiFocal,
    Arrays,
    Augmentation,
    BetaSmoothing,
    Brightness,
    Calibration,
    ClassConditional,
    Clean,
    Colour,
    ConfidencePenalty,
    Constant,
    Contrast,
    Cosine,
    Crop,
    CrossEntropy,
    Dataset,
    Digits,
    Distillation,
    DisturbLabel,
    FashionMNIST,
    Flip,
    Focal,
    ForwardCorrection,
    ImageFolder,
    ImageNet,
    InceptionV4,
    Instance,
    InverseSqrt,
    KnowledgeRefinery,
    LabelSmoothing,
    Linear,
    LogitSmoothing,
    MaxSup,
    MobileNetV2,
    Model,
    Multi30k,
    Noise,
    OnlineLabelSmoothing,
    Optimiser,
    Own,
    Pair,
    ParallelText,
    PreActResNet,
    Probe,
    Recipe,
    Regulariser,
    ResizedCrop,
    ResNet,
    ResNet18,
    ResNeXt29,
    Rotation,
    Schedule,
    Shift,
    Step,
    Symmetric,
    Tatoeba,
    TFReg,
    Timm,
    TinyImageNet,
    Transformer,
    TranslationDataset,
)
from softtargets.recipes.probes import Information
from softtargets.recipes.schema import Part, Scalar, field_types

NAMES: dict[type[Part], dict[str, type[Part]]] = {
    Dataset: {
        "digits": Digits,
        "mnist": MNIST,
        "fashion-mnist": FashionMNIST,
        "emnist": EMNIST,
        "cifar10": CIFAR10,
        "cifar100": CIFAR100,
        "cub200": CUB200,
        "tiny-imagenet": TinyImageNet,
        "imagenet": ImageNet,
        "arrays": Arrays,
        "image-folder": ImageFolder,
        "multi30k": Multi30k,
        "tatoeba": Tatoeba,
        "iwslt14": IWSLT14,
        "iwslt17": IWSLT17,
        "wmt14": WMT14,
        "parallel-text": ParallelText,
    },
    Model: {
        "mlp": MLP,
        "cnn": CNN,
        "alexnet": AlexNet,
        "preact_resnet": PreActResNet,
        "resnet18": ResNet18,
        "resnet": ResNet,
        "inception_v4": InceptionV4,
        "mobilenet_v2": MobileNetV2,
        "resnext29": ResNeXt29,
        "timm": Timm,
        "own": Own,
        "transformer": Transformer,
    },
    Regulariser: {
        "cross_entropy": CrossEntropy,
        "label_smoothing": LabelSmoothing,
        "distillation": Distillation,
        "confidence_penalty": ConfidencePenalty,
        "focal": Focal,
        "anti_focal": AntiFocal,
        "labo": LABO,
        "tf_reg": TFReg,
        "cs_kd": CSKD,
        "beta_smoothing": BetaSmoothing,
        "online_label_smoothing": OnlineLabelSmoothing,
        "knowledge_refinery": KnowledgeRefinery,
        "forward_correction": ForwardCorrection,
        "logit_smoothing": LogitSmoothing,
        "disturb_label": DisturbLabel,
        "max_sup": MaxSup,
    },
    Optimiser: {"sgd": SGD, "adam": Adam, "adamw": AdamW},
    Schedule: {
        "constant": Constant,
        "step": Step,
        "linear": Linear,
        "cosine": Cosine,
        "inverse_sqrt": InverseSqrt,
    },
    Augmentation: {
        "shift": Shift,
        "flip": Flip,
        "crop": Crop,
        "resized_crop": ResizedCrop,
        "colour": Colour,
        "brightness": Brightness,
        "contrast": Contrast,
        "affine": Affine,
        "rotation": Rotation,
    },
    Probe: {"calibration": Calibration, "information": Information, "bleu": BLEU},
    Noise: {
        "none": Clean,
        "symmetric": Symmetric,
        "pair": Pair,
        "class_conditional": ClassConditional,
        "instance": Instance,
    },
}
PARTS = [(slot, part) for slot, named in NAMES.items() for part in named.values()]
FIELDS = [(part, field.name) for _, part in PARTS for field in fields(part)]


def plain_recipe(**changes: Any) -> Recipe:
    return Recipe(**({"data": Digits(), "model": MLP(hidden=[64]), "epochs": 5} | changes))


def options_for(part: type[Part]) -> dict[str, Any]:
    """What a part cannot be made without."""
    needed: dict[type[Part], dict[str, Any]] = {
        Distillation: {"teacher": plain_recipe()},
        Timm: {"net": "resnet18"},
        Own: {"net": "mynets:SmallNet"},
        Arrays: {"arrays": "mine.npz"},
        ClassConditional: {"matrix": [[0.9, 0.1], [0.2, 0.8]]},
        ParallelText: {"corpus": "mine"},
        ImageFolder: {"folder": "mine"},
    }
    return needed.get(part, {})


def recipe_with(slot: type[Part], part: Part) -> Recipe:
    """A recipe that has `part` in its slot."""
    if slot is Augmentation:
        return plain_recipe(augmentation=[part])
    if slot is Probe:
        return plain_recipe(data=Digits(validation=100), augmentation=[Shift()], probes=[part])
    if isinstance(part, ForwardCorrection):
        return plain_recipe(regulariser=part, noise=Symmetric())
    return plain_recipe(**{"data" if slot is Dataset else slot.__name__.lower(): part})


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any valid value of a field with this annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, allowed = arguments
        if kind is int:
            return st.integers(int(allowed.low), 10_000)
        return st.floats(
            allowed.low,
            min(allowed.high, 1e6),
            exclude_min=allowed.open_low,
            exclude_max=allowed.open_high,
        )
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        (arm,) = (arm for arm in arguments if arm is not type(None))
        return st.none() | values(arm)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if hint is bool:
        return st.booleans()
    if hint is str:  # patterns of parameter names, and names of a corpus
        return st.sampled_from(["*", "head.*", "*.bias", "body.[13].weight", "body.?.*"])
    if hint is Scalar:
        return st.one_of(
            st.booleans(), st.integers(-9, 9), st.floats(-9, 9), st.sampled_from(["wide", "1e3"])
        )
    if hint is Recipe:
        return st.integers(0, 100).map(lambda seed: plain_recipe(seed=seed))
    return st.one_of([parts(part) for part in NAMES[hint].values()])


def parts(part: type[Part]) -> st.SearchStrategy[Part]:
    """Any valid part of a kind."""
    drawn = {name: values(hint) for name, hint in field_types(part).items()}
    return st.fixed_dictionaries(drawn).map(lambda options: part(**_agreeing(part, options)))


@st.composite
def recipes(draw: st.DrawFn, depth: int = 1, data: Dataset | None = None) -> Recipe:
    """Any valid recipe; a student's teacher is trained on the student's dataset."""
    hints = field_types(Recipe)
    options = {name: draw(values(hint)) for name, hint in hints.items() if name != "regulariser"}
    options["data"] = data or options["data"]
    if "validation" not in options["data"].splits:  # nothing there to look at
        options["probes"] = [each for each in options["probes"] if each.split != "validation"]
        options["best_by"] = None
    options["probes"] = _apart(options["probes"], options["augmentation"])
    looked = any(isinstance(each, BLEU) and each.split == "validation" for each in options["probes"])
    if options["best_by"] == "validation_bleu" and not looked:
        options["best_by"] = None
    if options["average"] is not None or options["best_by"]:
        options["average_last"] = None
    length = draw(st.integers(options["average_last"] or 1, 20_000))
    options |= draw(st.sampled_from([{"epochs": length, "steps": None}, {"epochs": None, "steps": length}]))
    if options["best_by"] and options["epochs"]:  # of several measurements
        options["measure_epochs"] = min(options["measure_epochs"], max(options["epochs"] - 1, 1))
    if depth and draw(st.booleans()):
        teacher = draw(recipes(depth=depth - 1, data=options["data"]))
        options["regulariser"] = Distillation(teacher=teacher, temperature=draw(st.floats(0.5, 20)))
    else:
        unknown = isinstance(options["noise"], (Clean, Instance))
        without = {Distillation, ForwardCorrection} if unknown else {Distillation}
        kinds = [part for part in NAMES[Regulariser].values() if part not in without]
        options["regulariser"] = draw(st.sampled_from(kinds).flatmap(parts))
    return Recipe(**options)


def _apart(probes: Any, augmentation: Any) -> list[Part]:
    """Those that may stand together: information needs augmentation, and looks at two classes of a split once; of a
    split translations are scored once.
    """
    kept = {}
    for place, each in enumerate(probes):
        informing = isinstance(each, Information)
        if augmentation or not informing:
            once = (each.split, each.classes) if informing else (each.split,)
            kept[once if informing or isinstance(each, BLEU) else place] = each
    return list(kept.values())


def _agreeing(part: type[Part], options: dict[str, Any]) -> dict[str, Any]:
    if part is SGD and options["nesterov"]:
        return options | {"momentum": options["momentum"] or 0.9, "dampening": 0}
    if part is LABO and options["warmup"] == "adaptive":
        return options | {"warmup_alpha": None}
    if part is Own:
        named = {f"option_{place}": value for place, (_, value) in enumerate(options["options"])}
        return options | {"net": f"mynets:Net{len(options['digest'])}", "options": tuple(named.items())}
    if part is AdamW or (part is Adam and options["decoupled"]):
        return options | {"decay_form": "gradient"}
    if part is PreActResNet:
        return options | {"depth": 6 * options["depth"] + 2, "stem": 2 * options["stem"] + 1}
    if part is ResNet:
        return options | {"depth": (18, 34, 50, 101, 152)[options["depth"] % 5]}
    if part is Transformer:
        return options | {"width": 2 * options["width"] * options["heads"]}
    if part is Step:
        return options | {"milestones": sorted(set(options["milestones"]))}
    if part is Information:
        first, second = options["classes"]
        return options | {"classes": (first, second + (first == second))}
    if part is Contrast:
        return dict(zip(("low", "high"), sorted(options.values()), strict=True))
    if part is LabelSmoothing and options["matrix"] is not None:
        return options | {"matrix": _stochastic(options["matrix"]), "spread": "all", "prior": "uniform"}
    if part in (Tatoeba, IWSLT14, IWSLT17):
        return options | {"target": "en" if options["source"] != "en" else "fr"}
    if issubclass(part, TranslationDataset) and options["source"] == options["target"]:
        return options | {"source": "de", "target": "en"}
    if part is ClassConditional:
        return options | {"matrix": _stochastic(options["matrix"])}
    if part is Affine and options["scale"]:
        return options | {"scale": sorted(options["scale"])}
    if part is ResizedCrop:
        return options | {field: sorted(options[field]) for field in ("scale", "ratio")}
    if part is ImageFolder:
        return options | {"folder": f"own-{len(options['folder'])}"}
    return options


def _stochastic(drawn: Any) -> tuple[tuple[float, ...], ...]:
    """A matrix with as many rows as were drawn, two at least; the first number drawn for a row leaves its class."""
    classes = max(2, len(drawn))
    leaving = [row[0] if row else 0.0 for row in drawn] + [0.0] * classes
    return tuple(
        tuple(1 - leaving[i] if i == j else leaving[i] / (classes - 1) for j in range(classes))
        for i in range(classes)
    )
