"""Every dataset softtargets knows by name: origin, terms, checksums.

The md5 sums are the publishers' own. The sha256 sums of unpacked files were computed from files that
passed those sums, or are published by others who unpacked the same archives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product, starmap
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from softtargets.data.cifar_n import FILES, read_human_labels
from softtargets.data.folders import CUB200_LISTS
from softtargets.data.idx import check_idx
from softtargets.data.source import Archive, Folder, KnownFile, Source, known_files, named_files, one_of
from softtargets.data.text_sources import TEXT_SOURCES
from softtargets.exceptions import DataError

_IDX = ("images-idx3", "labels-idx1")
_EMNIST_PARTS = ("balanced", "byclass", "bymerge", "letters", "digits", "mnist")


def _compressed(url: str, files: Iterable[KnownFile], plain: Iterable[KnownFile]) -> dict[str, Any]:
    """Compressed files that are kept as they come, each of which may also be there as the plain one it holds."""
    layout = tuple(replace(file, instead=(other,)) for file, other in zip(files, plain, strict=True))
    return {
        "archives": tuple(
            Archive(file.path, (f"{url}/{PurePosixPath(file.path).name}",), file.checksum, file.size)
            for file in layout
        ),
        "layouts": (layout,),
    }


def _idx(folder: str, url: str, sizes: tuple[int, ...], *lines: str) -> dict[str, Any]:
    """The four files of MNIST and its likes; a line has the md5 of each and the sha256 of what it holds."""
    names = [f"{split}-{kind}-ubyte" for split in ("train", "t10k") for kind in _IDX]
    sums = [line.split() for line in lines]
    both = list(zip(names, sums, sizes, (47_040_016, 60_008, 7_840_016, 10_008), strict=True))
    files = known_files(folder, *(f"{md5} {name}.gz {size}" for name, (md5, _), size, _ in both))
    plain = known_files(folder, *(f"{sha256} {name} {size}" for name, (_, sha256), _, size in both))
    return _compressed(url, files, plain)


def _packed(
    url: str, checksum: str, top: str, into: str = "", size: int | None = None
) -> tuple[Archive, ...]:
    """An archive whose directory `top` becomes the directory `into`; it is fetched to where that will be."""
    kind: Literal["zip", "tar"] = "zip" if url.endswith(".zip") else "tar"
    file = PurePosixPath(into).with_name(PurePosixPath(url).name) if into else PurePosixPath(url).name
    return (Archive(str(file), (url,), checksum, size, unpack=kind, top=top, into=into or top),)


def _emnist(part: str, split: str, kind: str) -> KnownFile:
    plain = f"EMNIST/raw/emnist-{part}-{split}-{kind}-ubyte"
    # No sums of the inner files are published, so each is read through: gzip's own CRC, header and length.
    return KnownFile(f"{plain}.gz", inspect=check_idx, instead=(KnownFile(plain, inspect=check_idx),))


def _cifar_n(name: str, title: str, what: str) -> Source:
    check = partial(read_human_labels, name=name)
    published, plain = FILES[name]
    url = f"https://raw.githubusercontent.com/UCSC-REAL/cifar-10-100n/main/data/{published.split('/')[1]}"
    return Source(
        name=name,
        title=title,
        what=what,
        citation="Wei et al., Learning with Noisy Labels Revisited: A Study Using Real-World Human "
        "Annotations, ICLR 2022",
        terms="CC BY-NC 4.0",
        homepage="http://noisylabels.com",
        # Nobody publishes a checksum of these files, so the labels inside are what is pinned.
        archives=(Archive(published, (url,), inspect=check),),
        layouts=((KnownFile(published, inspect=check),), (KnownFile(plain, inspect=check),)),
    )


_MULTI30K = known_files(
    "multi30k",
    "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8 test_2016_flickr.de.gz 22890",
    "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9 test_2016_flickr.en.gz 21077",
    "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90 test_2016_flickr.fr.gz 22310",
    "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee test_2017_flickr.de.gz 21471",
    "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074 test_2017_flickr.en.gz 19138",
    "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496 test_2017_flickr.fr.gz 20434",
    "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338 test_2017_mscoco.de.gz 10230",
    "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58 test_2017_mscoco.en.gz 8844",
    "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0 test_2017_mscoco.fr.gz 9751",
    "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608 test_2018_flickr.de.gz 26461",
    "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d test_2018_flickr.en.gz 23514",
    "fb2b83fcceb937a4f7e3e93c1c51c22aba92f1e342391e6b5ba392b16a920501 test_2018_flickr.fr.gz 25321",
    "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6 train.de.gz 637044",
    "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f train.en.gz 568929",
    "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c train.fr.gz 604242",
    "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a val.de.gz 24681",
    "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28 val.en.gz 21650",
    "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9 val.fr.gz 23001",
)
_MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"

_SOURCES = (
    Source(
        name="digits",
        title="Optical recognition of handwritten digits",
        what="1,797 grey images of 8x8 in 10 classes; 1,297 train, 500 test (our split, fixed for ever)",
        citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998",
        terms="CC BY 4.0; comes with scikit-learn",
        homepage="https://archive.ics.uci.edu/dataset/80",
    ),
    Source(
        name="mnist",
        title="MNIST",
        what="60,000 train and 10,000 test grey images of 28x28 in 10 classes",
        citation="LeCun, Bottou, Bengio and Haffner, Gradient-Based Learning Applied to Document "
        "Recognition, Proc. IEEE 1998",
        terms="no licence stated by the authors",
        homepage="http://yann.lecun.com/exdb/mnist/",
        **_idx(
            "MNIST/raw",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            (9_912_422, 28_881, 1_648_877, 4_542),
            "f68b3c2dcbeaaa9fbdd348bbdeb94873 ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "d53e105ee54ea40749a09fcbcd1e9432 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "9fb629c4189551a2d022fa330f9573f3 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ec29112dd5afa0611ce80d1b7f02629c ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    Source(
        name="fashion-mnist",
        title="Fashion-MNIST",
        what="60,000 train and 10,000 test grey images of 28x28 in 10 classes",
        citation="Xiao, Rasul and Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms, 2017",
        terms="MIT, Zalando SE",
        homepage="https://github.com/zalandoresearch/fashion-mnist",
        **_idx(
            "FashionMNIST/raw",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            (26_421_880, 29_515, 4_422_102, 5_148),
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "25c81989df183df01b3e8a0aad5dffbe bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "bef4ecab320f06d8554ea6380940ec79 5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "bb300cfdad3c16e7a12a480ee83cd310 0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    Source(
        name="emnist",
        title="EMNIST",
        what="handwritten letters and digits, grey, 28x28; part 'balanced': 112,800 train and 18,800 test in "
        "47 classes",
        citation="Cohen, Afshar, Tapson and van Schaik, EMNIST: an extension of MNIST to handwritten "
        "letters, 2017",
        terms="no licence stated; made from NIST Special Database 19",
        homepage="https://www.nist.gov/itl/products-and-services/emnist-dataset",
        archives=_packed(
            "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
            "md5:58c8d27c78d21e728a6bc7b3cc06412e",
            "gzip",
            "EMNIST/raw",
        ),
        layouts=(tuple(starmap(_emnist, product(_EMNIST_PARTS, ("train", "test"), _IDX))),),
    ),
    Source(
        name="cifar10",
        title="CIFAR-10",
        what="50,000 train and 10,000 test colour images of 32x32 in 10 classes",
        citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        terms="no licence stated; the author asks for the citation",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        archives=_packed(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "md5:c32a1d4ab5d03f1284b67883e8d87530",
            "cifar-10-batches-bin",
            size=170_052_171,
        ),
        layouts=(
            known_files(
                "cifar-10-batches-bin",
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5 data_batch_1.bin 30730000",
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed data_batch_2.bin 30730000",
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67 data_batch_3.bin 30730000",
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48 data_batch_4.bin 30730000",
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add data_batch_5.bin 30730000",
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b test_batch.bin 30730000",
            ),
            known_files(
                "cifar-10-batches-py",
                "c99cafc152244af753f735de768cd75f data_batch_1",
                "d4bba439e000b95fd0a9bffe97cbabec data_batch_2",
                "54ebc095f3ab1f0389bbae665268c751 data_batch_3",
                "634d18415352ddfa80567beed471001a data_batch_4",
                "482c414d41f54cd18b22e5b47cb7c3cb data_batch_5",
                "40351d587109b95175f43aff81a1287e test_batch",
                "5ff9c542aee3614f3951f8cda6e48888 batches.meta",
            ),
        ),
    ),
    Source(
        name="cifar100",
        title="CIFAR-100",
        what="50,000 train and 10,000 test colour images of 32x32 in 100 fine and 20 coarse classes",
        citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        terms="no licence stated; the author asks for the citation",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        archives=_packed(
            "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
            "md5:03b5dce01913d631647c71ecec9e9cb8",
            "cifar-100-binary",
            size=168_513_733,
        ),
        layouts=(
            known_files(
                "cifar-100-binary",
                "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29 train.bin 153700000",
                "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a test.bin 30740000",
            ),
            known_files(
                "cifar-100-python",
                "16019d7e3df5f24257cddd939b257f8d train",
                "f0ef6b0ae62326f3e7ffdfab6717acfc test",
                "7973b15100ade9c7d40fb424638fde48 meta",
            ),
        ),
    ),
    _cifar_n("cifar10n", "CIFAR-10N", "five sets of human labels for CIFAR-10's 50,000 training images"),
    _cifar_n(
        "cifar100n", "CIFAR-100N", "human fine and coarse labels for CIFAR-100's 50,000 training images"
    ),
    Source(
        name="cub200",
        title="Caltech-UCSD Birds-200-2011",
        what="5,994 train and 5,794 test photographs of 200 bird species",
        citation="Wah, Branson, Welinder, Perona and Belongie, The Caltech-UCSD Birds-200-2011 Dataset, 2011",
        terms="non-commercial research and education only; the photographs belong to their authors",
        homepage="https://data.caltech.edu/records/65de6-vp158",
        archives=_packed(
            "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
            "md5:97eceeb196236b17998738112f37df78",
            "CUB_200_2011",
        ),
        layouts=(named_files("CUB_200_2011", *CUB200_LISTS),),
        folders=(Folder("CUB_200_2011/images", 200, 11_788),),
    ),
    Source(
        name="tiny-imagenet",
        title="Tiny ImageNet",
        what="100,000 train and 10,000 validation (our test) colour images of 64x64 in 200 classes",
        citation="Le and Yang, Tiny ImageNet Visual Recognition Challenge, CS231n, 2015",
        terms="as ImageNet: non-commercial research and education",
        homepage="http://cs231n.stanford.edu",
        archives=_packed(
            "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
            "md5:90528d7ca1a48142e341f4ef8d21d0de",
            "tiny-imagenet-200",
            size=248_100_043,
        ),
        layouts=(named_files("tiny-imagenet-200", "wnids.txt", "words.txt", "val/val_annotations.txt"),),
        folders=(Folder("tiny-imagenet-200/train", 200, 100_000), Folder("tiny-imagenet-200/val", 1, 10_000)),
    ),
    Source(
        name="imagenet",
        title="ImageNet (ILSVRC 2012)",
        what="1,281,167 train and 50,000 validation (our test) photographs in 1,000 classes",
        citation="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015",
        terms="non-commercial research and education, after registration",
        homepage="https://image-net.org",
        folders=(Folder("imagenet/train", 1_000, 1_281_167), Folder("imagenet/val", 1_000, 50_000)),
        by_hand="it needs an account: register at https://image-net.org, download ILSVRC2012_img_train.tar (md5 "
        "1d675b47d978889d74fa0da5fadfb00e) and ILSVRC2012_img_val.tar (md5 29b22e2961454d5413ddabcf34fc5622), "
        "and unpack them as {to}/imagenet/train/<wnid>/*.JPEG and {to}/imagenet/val/<wnid>/*.JPEG",
    ),
    Source(
        name="multi30k",
        title="Multi30k, task 1",
        what="29,000 train, 1,014 val and four test sets of image captions in English, German and French",
        citation="Elliott, Frank, Sima'an and Specia, Multi30K: Multilingual English-German Image "
        "Descriptions, 2016",
        terms="no licence stated; the authors ask for the citation",
        homepage="https://github.com/multi30k/dataset",
        **_compressed(_MULTI30K_URL, _MULTI30K, (KnownFile(file.path[:-3]) for file in _MULTI30K)),
    ),
)

CATALOGUE: dict[str, Source] = {source.name: source for source in (*_SOURCES, *TEXT_SOURCES)}


def find_source(name: str) -> Source:
    """Return the catalogue's entry, or say which names there are.

    >>> find_source("mnist").title
    'MNIST'
    """
    one_of(name, CATALOGUE, "there is no dataset", "known:")
    return CATALOGUE[name]


@contextmanager
def remedied(name: str, root: Path) -> Iterator[None]:
    """Add the command that fetches a dataset to what is wrong with its files."""
    try:
        yield
    except DataError as problem:
        remedy = find_source(name).remedy(root) if name in CATALOGUE else ""
        if remedy and remedy not in str(problem):
            raise DataError(f"{problem}; {remedy}") from None
        raise
