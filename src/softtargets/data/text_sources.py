"""The corpora of sentence pairs that a person has to bring: origin, terms, checksums where there are any."""

from __future__ import annotations

from dataclasses import replace

from softtargets.data.source import KnownFile, Source, known_files, named_files

_TALKS = "the talks are TED's, CC BY-NC-ND 4.0; for research"
_NEWSTEST2014 = known_files(
    "wmt14",
    "7294bccf2879a97b3706b95c9595f1459617a8ee7130d5d8581c910e69736971 newstest2014.en 359898",
    "ae5d110486bc33d7175e9e28c7d0051eb3e5fcd2166dd93371089852c091a20e newstest2014.de 399406",
)


def _published(year: str, direction: str, *sets: str) -> tuple[KnownFile, ...]:
    """The files of one direction as the organisers publish them."""
    languages = direction.split("-")
    names = [f"train.tags.{direction}.{language}" for language in languages]
    names += [f"IWSLT{year}.{name}.{direction}.{language}.xml" for name in sets for language in languages]
    return named_files(f"iwslt{year}/{direction}", *names)


def _also_in(folder: str, file: KnownFile) -> KnownFile:
    return replace(file, instead=(replace(file, path=f"{folder}/{file.path.split('/')[1]}"),))


TEXT_SOURCES = (
    Source(
        name="tatoeba",
        title="Tatoeba sentence pairs",
        what="169,813 English-German and 167,130 English-French pairs; about 3,000 each for validation and test (our "
        "split by English sentence, fixed for ever)",
        citation="Tatoeba, https://tatoeba.org, in the selection of https://www.manythings.org/anki",
        terms="CC BY 2.0",
        homepage="https://www.manythings.org/anki/",
        layouts=(
            known_files(
                "tatoeba",
                "a79c90b3cd3102decffa49cc00fb6f20023974f2ae5c4782515bebe133fcc07b deu-eng.tsv 12316220",
                "0bb85dbaa1c896844649094d7eaf2e34bee34e84fe362b26ce7e8f2e12aae104 fra-eng.tsv 11669748",
            ),
        ),
        by_hand="its publisher replaces it every few weeks: find the export deu-eng.zip of 2018-05-13 (it was in the "
        "GitHub repository rioyshky/translation) and fra-eng.zip of 2019-04-07 (modelexlab/data), and put the tables "
        "in them at {to}/tatoeba/deu-eng.tsv and {to}/tatoeba/fra-eng.tsv",
    ),
    Source(
        name="iwslt14",
        title="IWSLT'14",
        what="TED talks: German and French with English; validation and test as in fairseq",
        citation="Cettolo, Niehues, Stüker, Bentivogli and Federico, Report on the 11th IWSLT Evaluation Campaign, "
        "IWSLT 2014",
        terms=_TALKS,
        homepage="https://wit3.fbk.eu",
        layouts=(
            named_files(
                "iwslt14", *(f"{part}.{code}" for part in ("train", "valid", "test") for code in ("de", "en"))
            ),
            *(
                _published(
                    "14", direction, "TED.dev2010", *dev2012, "TED.tst2010", "TED.tst2011", "TED.tst2012"
                )
                for direction, dev2012 in (
                    ("de-en", ["TEDX.dev2012"]),
                    ("en-de", []),
                    ("en-fr", []),
                    ("fr-en", []),
                )
            ),
        ),
        by_hand="download the archive of a direction (de-en.tgz) from https://wit3.fbk.eu and unpack it as "
        "{to}/iwslt14/de-en/train.tags.de-en.de and so on, or run fairseq's examples/translation/prepare-iwslt14.sh "
        "and put its train, valid and test files into {to}/iwslt14",
    ),
    Source(
        name="iwslt17",
        title="IWSLT'17",
        what="TED talks: German and French with English; dev2010 to tst2015 for validation, tst2017 as test set",
        citation="Cettolo et al., Overview of the IWSLT 2017 Evaluation Campaign, IWSLT 2017",
        terms=_TALKS,
        homepage="https://wit3.fbk.eu",
        layouts=tuple(
            _published("17", direction, "TED.dev2010", *(f"TED.tst{year}" for year in range(2010, 2016)))
            for direction in ("de-en", "fr-en", "en-de", "en-fr")
        ),
        by_hand="download the archive of each direction (de-en.tgz, fr-en.tgz) and those of tst2017 from "
        "https://wit3.fbk.eu and unpack them as {to}/iwslt17/de-en/train.tags.de-en.de, "
        "{to}/iwslt17/de-en/IWSLT17.TED.tst2017.de-en.de.xml and so on",
    ),
    Source(
        name="wmt14",
        title="WMT'14 English-German",
        what="4.5 million pairs for training, newstest2013 for validation, newstest2014 (3,003 pairs) as test set",
        citation="Bojar et al., Findings of the 2014 Workshop on Statistical Machine Translation, WMT 2014",
        terms="free for research; each source has its own terms",
        homepage="https://www.statmt.org/wmt14/translation-task.html",
        layouts=(
            tuple(
                _also_in("wmt", file)
                for file in (
                    *named_files("wmt14", "train.en", "train.de", "newstest2013.en", "newstest2013.de"),
                    *_NEWSTEST2014,
                )
            ),
        ),
        by_hand="collect it from https://www.statmt.org/wmt14/translation-task.html as one sentence a line in "
        "{to}/wmt14/train.en and train.de, newstest2013.en and newstest2013.de, newstest2014.en and newstest2014.de; "
        "each test set can be used without the others",
    ),
)
