"""Any net of timm."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from softtargets.exceptions import SofttargetsError
from softtargets.models.classifier import Classifier


class Timm(Classifier):
    """A net of timm (Wightman, "PyTorch image models"), by the name `net` that ``timm.create_model`` knows.

    Penultimate activations are timm's own: ``forward_head(forward_features(images), pre_logits=True)``. The classifier
    (``get_classifier()``) is moved out of the net to become `head`, so that it has one name, here as everywhere.
    `pretrained` weights are downloaded by timm; the first convolution is adapted to the channels of the images and the
    classifier starts anew. Dropout inside timm's nets draws from torch's generator whatever `draw_from` says.

    >>> net = Timm(shape=(3, 64, 64), classes=10, net="resnet50")  # doctest: +SKIP
    >>> net.templates.shape  # doctest: +SKIP
    torch.Size([10, 2048])
    """

    def __init__(self, shape: tuple[int, int, int], classes: int, net: str, pretrained: bool = False) -> None:
        super().__init__()
        timm = _timm()
        if not timm.is_model(net):
            close = get_close_matches(net, timm.list_models(), n=3)
            meant = f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
            raise ValueError(f"timm has no network {net!r}{meant}; timm.list_models() names all it has")
        depth, height, width = shape
        try:
            made = timm.create_model(net, pretrained=pretrained, num_classes=classes, in_chans=depth)
        except RuntimeError as error:  # an unknown tag after the dot, or no weights to be had
            raise ValueError(f"timm cannot make {net!r}: {error}") from None
        _check_fixed_size(made, net, height, width)
        head = made.get_classifier()
        if not isinstance(head, nn.Linear):
            raise ValueError(
                f"the classifier of timm's {net!r} is a {type(head).__name__}, not a linear layer, so it has no "
                "templates"
            )
        path = next(name for name, module in made.named_modules() if module is head)
        parent, _, name = path.rpartition(".")
        setattr(made.get_submodule(parent), name, nn.Identity())
        self.net = made
        self.head = head

    def features(self, images: Tensor) -> Tensor:
        """What timm's classifier would see."""
        activations: Tensor = self.net.forward_head(self.net.forward_features(images), pre_logits=True)
        return activations


def _timm() -> Any:
    # Imported here and not above: it is an extra, and it imports torchvision.
    try:
        return import_module("timm")
    except (ImportError, RuntimeError) as error:  # torchvision for another torch fails with a RuntimeError
        raise SofttargetsError(
            f"networks of timm need timm, which cannot be imported ({error}); pip install timm"
        ) from error


def _check_fixed_size(made: nn.Module, net: str, height: int, width: int) -> None:
    known: Any = getattr(made, "pretrained_cfg", None) or {}
    if known.get("fixed_input_size"):
        _, *size = known["input_size"]
        if size != [height, width]:
            raise ValueError(
                f"timm's {net!r} only takes images of {size[0]} x {size[1]}, not of {height} x {width}"
            )
