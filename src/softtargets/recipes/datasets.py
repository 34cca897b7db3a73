"""What a recipe can train on. Each name is also the name `softtargets data` knows the set by."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, Index, Part, Range

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "CUB200",
    "EMNIST",
    "IWSLT14",
    "IWSLT17",
    "MNIST",
    "WMT14",
    "Arrays",
    "Dataset",
    "Digits",
    "FashionMNIST",
    "ImageDataset",
    "ImageFiles",
    "ImageFolder",
    "ImageNet",
    "Multi30k",
    "ParallelText",
    "Tatoeba",
    "TinyImageNet",
    "TranslationDataset",
]


class Dataset(Part):
    """Fields that every dataset has.

    validation: how many examples at the end of the training set are held out as the ``validation`` split. limit:
    train on the first so many of the rest; None means all of them.

    A kind of dataset says which task of the engine it is for, and in which unit its work is counted. Neither is part
    of a recipe's identity.
    """

    task: ClassVar[str]
    unit: ClassVar[str]
    training_examples: ClassVar[int | None] = (
        None  # before validation and limit; None where it is not always the same
    )

    validation: Index = 0
    limit: Count | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits that there are."""
        return ("train", "validation", "test") if self.validation else ("train", "test")

    @property
    def epoch_units(self) -> int | None:
        """The work of an epoch, in the unit of the dataset; None where that is not known beforehand."""
        if self.training_examples is None:
            return None
        kept = self.training_examples - self.validation
        return min(kept, self.limit or kept)

    def step_units(self, batch: int) -> int:
        """The work of a step, in the unit of the dataset."""
        return batch

    def reader_options(self) -> dict[str, Any]:
        """The fields that only this dataset has: what its reader must be told."""
        above = [kind for kind in type(self).__mro__[1:] if issubclass(kind, Dataset)]
        shared = {field.name for kind in above for field in fields(kind)}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in shared}


class ImageDataset(Dataset):
    """Labelled images.

    standardise: ``unit`` divides by 255; ``channel`` also subtracts the training mean and divides by the
                 training deviation of each channel; ``image`` does so with each image's own.
    """

    task: ClassVar[str] = "images"
    unit: ClassVar[str] = "images"

    standardise: Literal["unit", "channel", "image"] = "unit"


class Digits(ImageDataset, name="digits"):
    """scikit-learn's handwritten digits: 1,797 grey images of 8 x 8, 10 classes, no download."""

    training_examples: ClassVar[int | None] = 1_297


class MNIST(ImageDataset, name="mnist"):
    """Handwritten digits: 60,000 training and 10,000 test images, 28 x 28 grey, 10 classes."""

    training_examples: ClassVar[int | None] = 60_000


class FashionMNIST(ImageDataset, name="fashion-mnist"):
    """Articles of clothing: 60,000 training and 10,000 test images, 28 x 28 grey, 10 classes."""

    training_examples: ClassVar[int | None] = 60_000


class EMNIST(ImageDataset, name="emnist"):
    """Handwritten digits and letters, 28 x 28 grey. The replication uses the balanced `part`, 47 classes."""

    part: Literal["byclass", "bymerge", "balanced", "letters", "digits", "mnist"] = "balanced"


class CIFAR10(ImageDataset, name="cifar10"):
    """50,000 training and 10,000 test colour images, 32 x 32, 10 classes. `labels` may be CIFAR-10N's human ones."""

    training_examples: ClassVar[int | None] = 50_000

    labels: Literal["clean", "aggregate", "worse", "random1", "random2", "random3"] = "clean"


class CIFAR100(ImageDataset, name="cifar100"):
    """50,000 training and 10,000 test colour images, 32 x 32, 100 fine or 20 coarse classes."""

    training_examples: ClassVar[int | None] = 50_000

    labels: Literal["clean", "noisy"] = "clean"
    coarse: bool = False


class ImageFiles(ImageDataset):
    """Images that lie in files of any size; at most `size` x `size` pixels of each are kept.

    keep:   ``middle`` resizes a picture so that its shorter side is `size` and cuts the middle out; ``picture`` keeps
            all of it as it is (what is larger is made smaller until it fits), for `resized_crop` to take parts of.
    draft:  decode JPEG files at a half, a quarter or an eighth of their size where that is still enough: faster for
            large photographs, and not quite the same pixels.
    """

    keep: Literal["middle", "picture"] = "middle"
    draft: bool = False

    def reader_options(self) -> dict[str, Any]:
        """How files are decoded, too."""
        return {**super().reader_options(), "keep": self.keep, "draft": self.draft}


class CUB200(ImageFiles, name="cub200"):
    """Caltech-UCSD Birds 200-2011: 5,994 training and 5,794 test photographs, 200 classes, cropped to `size`."""

    training_examples: ClassVar[int | None] = 5_994

    size: Count = 224


class TinyImageNet(ImageFiles, name="tiny-imagenet"):
    """Tiny ImageNet: 100,000 training images, 64 x 64, 200 classes; its 10,000 validation images are our test set."""

    training_examples: ClassVar[int | None] = 100_000

    size: Count = 64


class ImageNet(ImageFiles, name="imagenet"):
    """ImageNet (ILSVRC 2012), resized and cropped to `size`; its validation set is our test set."""

    size: Count = 224


class Arrays(ImageDataset, name="arrays", shorthand="arrays"):
    """Your own images as arrays: the file `arrays` in the data directory.

    `digest` identifies the images and labels, so that a run is never taken for one on other data: ``softtargets
    data arrays FILE`` makes both from a .npz or .npy file.
    """

    arrays: str
    digest: str = ""

    def check(self) -> None:
        """A name in the data directory: a path would make a run of the same images another one elsewhere."""
        if not self.arrays or self.arrays.startswith(("/", "~")) or ".." in self.arrays.split("/"):
            raise RecipeError(
                f"{self.arrays!r} is not the name of a file in the data directory; add your arrays with: softtargets "
                "data arrays FILE",
                "arrays",
            )


class ImageFolder(ImageFiles, name="image-folder", shorthand="folder"):
    """Your own images: the directory `folder` in the data directory.

    It holds ``train/CLASS/IMAGE`` and ``test/CLASS/IMAGE`` (or ``val``). `digest` identifies the images, so that a
    run is never taken for one on other images: ``softtargets data folder PATH`` prints both. `upright` turns
    photographs as their EXIF says.
    """

    folder: str
    digest: str = ""
    size: Count = 64
    upright: bool = True

    def check(self) -> None:
        """A name in the data directory: a path would make a run of the same images another one elsewhere."""
        if not self.folder or self.folder.startswith(("/", "~")) or ".." in self.folder.split("/"):
            raise RecipeError(
                f"{self.folder!r} is not the name of a directory in the data directory; add your folder with: "
                "softtargets data folder PATH",
                "folder",
            )


class TranslationDataset(Dataset):
    """Sentences and their translations, as pieces of words that both languages share (byte-pair encoding).

    vocabulary:  how many pieces there are at most, the four symbols for padding, beginning, end and unknown included.
    lowercase:   whether all text is lowercased.
    longest:     training pairs with a side of more pieces than this are left out.
    ratio:       so are those with one side more than so many times as long as the other; nothing keeps them.
    validation:  0 takes the validation set of the corpus; else so many pairs are taken out of the training set.
    limit:       train on so many pairs, drawn once and for ever.

    `batch` of a recipe is in tokens: the most that a batch has on either side, padding included.
    """

    task: ClassVar[str] = "translation"
    unit: ClassVar[str] = "tokens"
    tokens_per_pair: ClassVar[float] = 10.0  # of the target, about, with the default number of pieces
    padding: ClassVar[float] = 0.13  # of a batch, about, as Multi30k's has (benchmarks/translation)

    vocabulary: Annotated[int, Range(5)] = 8000
    lowercase: bool = False
    longest: Count = 175
    ratio: Annotated[float, Range(1)] | None = 1.5

    @property
    def splits(self) -> tuple[str, ...]:
        """There is always something to choose by."""
        return ("train", "validation", "test")

    @property
    def epoch_units(self) -> int | None:
        """About: how many tokens a sentence has depends on the vocabulary, and some pairs are left out."""
        pairs = super().epoch_units
        if pairs is None:
            return None
        several = len(self.languages) if self.limit is None else 1
        return round(several * pairs * self.tokens_per_pair)

    def step_units(self, batch: int) -> int:
        """About: a batch is so many tokens with padding, which sentences of similar length have little of."""
        return round(batch * (1 - self.padding))

    @property
    def languages(self) -> tuple[tuple[str, str], ...]:
        """The directions that are trained together, source and target; most corpora have one."""
        source, target = getattr(self, "source", "source"), getattr(self, "target", "target")
        return tuple((one, target) for one in source.split("+"))

    def check(self) -> None:
        """A translation is into another language."""
        for source, target in self.languages:
            if source == target:
                raise RecipeError(f"{target} is also the source; give a different language", "target")


class Multi30k(TranslationDataset, name="multi30k"):
    """Captions of photographs in English, German and French: 29,000 pairs, 1,014 to validate, 1,000 to test (2016)."""

    training_examples: ClassVar[int | None] = 29_000
    tokens_per_pair: ClassVar[float] = 15.2

    source: Literal["en", "de", "fr"] = "en"
    target: Literal["en", "de", "fr"] = "de"


class Tatoeba(TranslationDataset, name="tatoeba"):
    """Everyday sentences: some 170,000 pairs of English with German, and with French; split by English sentence.

    ``de+fr`` trains on both languages at once.
    """

    training_examples: ClassVar[int | None] = 162_800
    tokens_per_pair: ClassVar[float] = 9.4

    source: Literal["en", "de", "fr", "de+fr"] = "de"
    target: Literal["en", "de", "fr"] = "en"

    def check(self) -> None:
        """English is always one of the two."""
        super().check()
        _check_english(self.source, self.target)


class IWSLT14(TranslationDataset, name="iwslt14"):
    """Talks (TED) of IWSLT'14, English with German or French: about 160,000 pairs to train on.

    The defaults are those of fairseq's recipe, which Lu et al. 2023 follow: lowercased, 10,000 pieces.
    """

    source: Literal["en", "de", "fr"] = "de"
    target: Literal["en", "de", "fr"] = "en"
    vocabulary: Annotated[int, Range(5)] = 10_000
    lowercase: bool = True

    def check(self) -> None:
        """English is always one of the two."""
        super().check()
        _check_english(self.source, self.target)


class IWSLT17(TranslationDataset, name="iwslt17"):
    """Talks (TED) of IWSLT'17, from German and French into English at once, as in table 2 of Lu et al. 2023."""

    source: Literal["en", "de", "fr", "de+fr"] = "de+fr"
    target: Literal["en", "de", "fr"] = "en"
    vocabulary: Annotated[int, Range(5)] = 16_000

    def check(self) -> None:
        """English is always one of the two."""
        super().check()
        _check_english(self.source, self.target)


class WMT14(TranslationDataset, name="wmt14"):
    """News of WMT'14, English and German: about 4.5 million pairs; newstest2013 validates, newstest2014 tests."""

    source: Literal["en", "de"] = "en"
    target: Literal["en", "de"] = "de"
    vocabulary: Annotated[int, Range(5)] = 32_000


class ParallelText(TranslationDataset, name="parallel-text", shorthand="corpus"):
    """Your own aligned text: the directory `corpus` in the data directory, with ``train.SOURCE``, ``train.TARGET``.

    So with ``validation`` and ``test``; each file may end in ``.gz``. `digest` identifies the text, so that a run
    is never taken for one on another text: `softtargets translate train` fills it in.
    """

    corpus: str
    source: str = "source"
    target: str = "target"
    digest: str = ""


def _check_english(source: str, target: str) -> None:
    if "en" not in (source, target):
        raise RecipeError(
            f"there are no pairs from {source} to {target}: one of the two must be en", "target"
        )
