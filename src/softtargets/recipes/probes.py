"""What is measured while a model trains, besides losses and accuracies."""

from __future__ import annotations

from typing import Annotated, Literal

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, Index, Part, Range

__all__ = ["BLEU", "Calibration", "Information", "Probe"]


class Probe(Part):
    """The slot for an instrument that measures the model every `every` steps, and at the end of the training.

    Its numbers are added to the row of metrics of that step, under its own name: ``calibration.test_ece``.
    """

    every: Count = 1000


class Calibration(Probe, name="calibration"):
    """Expected calibration error and mean confidence on a split."""

    split: Literal["train", "validation", "test"] = "test"
    bins: Count = 15


class Information(Probe, name="information"):
    """Mutual information between an example and the difference of two logits; the noise is the augmentation.

    Looks at the first `examples` of each of two classes, by the labels as they were read, with so many draws of the
    recipe's own augmentation each. The defaults are those of Müller et al. 2019 (appendix A.2): airplane and dog of
    CIFAR-10, 300 training examples of each, 5 draws, every 4,000 steps.

    `inner` is what a draw is compared with. `all`: the average over all examples, which gives at most log(examples).
    `others`: over all but its own, without an upper bound; its names have ``others`` in them.
    """

    every: Count = 4000
    split: Literal["train", "validation", "test"] = "train"
    classes: tuple[Index, Index] = (0, 5)
    examples: Count = 300
    draws: Annotated[int, Range(2)] = 5
    inner: Literal["all", "others"] = "all"

    def check(self) -> None:
        """A difference is that of two classes."""
        if self.classes[0] == self.classes[1]:
            raise RecipeError(
                f"names class {self.classes[0]} twice, and a logit minus itself says nothing; give two classes",
                "classes",
            )


class BLEU(Probe, name="bleu"):
    """BLEU of translations of a split, by beam search; a beam of 1 is greedy.

    `sentences` is how many are translated, from the first; by default all.
    """

    split: Literal["validation", "test"] = "validation"
    beam: Count = 1
    sentences: Count | None = None
