"""Scores against the sacrebleu command on the same files."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.translation import bleu, bleu_of, chrf, sentence_scores, sentence_statistics

pytest.importorskip("sacrebleu")

HYPOTHESES = [
    "A man in a blue shirt is standing on a ladder.",
    "two dogs Play in the snow , together",
    "",
    "Ein Mann fährt 3,5 km; (schnell!)",
    "The the the the",
]
REFERENCES = [
    "A man in a Blue shirt stands on a ladder cleaning a window.",
    "Two dogs play in the snow together.",
    "Nobody is here.",
    "Ein Mann fährt 3.5 km (schnell)!",
    "The cat is on the mat",
]
OTHERS = [
    "A guy in a blue shirt is on a ladder.",
    "Dogs play in snow.",
    "No one.",
    "Er fährt 3,5 km.",
    "A cat",
]


def command(
    folder: Path, references: list[list[str]], *options: str, hypotheses: list[str] = HYPOTHESES
) -> list[dict]:
    """What the command says of files."""
    paths = []
    for place, stream in enumerate(references):
        paths.append(folder / f"references.{place}")
        paths[-1].write_text("".join(f"{line}\n" for line in stream), encoding="utf-8")
    (folder / "hypotheses").write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
    words = [sys.executable, "-m", "sacrebleu", *map(str, paths), "-i", str(folder / "hypotheses"), "-w", "8"]
    done = subprocess.run([*words, "-f", "json", *options], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("references", [[REFERENCES], [REFERENCES, OTHERS]], ids=["one", "two"])
def test_the_command_says_the_same(tmp_path, lowercase, references):
    # The command has an option for case of BLEU and another for chrF.
    options = ["-lc", "--chrf-lowercase"] if lowercase else []
    for_bleu, for_chrf = command(tmp_path, references, "-m", "bleu", "chrf", *options)
    given = references[0] if len(references) == 1 else references
    for found, said in (
        (bleu(HYPOTHESES, given, lowercase), for_bleu),
        (chrf(HYPOTHESES, given, lowercase), for_chrf),
    ):
        assert found.value == pytest.approx(said["score"], abs=1e-7)
        assert found.signature == said["signature"]
        assert f"nrefs:{len(references)}|case:{'lc' if lowercase else 'mixed'}" in found.signature


@pytest.mark.realdata
def test_the_command_says_the_same_of_a_real_test_set(tmp_path):
    path = Path(os.environ.get("SOFTTARGETS_DATA", "")) / "multi30k" / "test_2016_flickr.de.gz"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    references = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
    draw = random.Random(0)
    hypotheses = [" ".join(w for w in line.split() if draw.random() < 0.9) for line in references]
    (said,) = command(tmp_path, [references], "-m", "bleu", hypotheses=hypotheses)
    assert len(references) == 1000
    assert bleu(hypotheses, references).value == pytest.approx(said["score"], abs=1e-7)
    assert bleu_of(sentence_statistics(hypotheses, references)) == pytest.approx(said["score"], abs=1e-7)


def test_case_matters_unless_told():
    assert bleu(["THE CAT SAT DOWN"], ["the cat sat down"]).value < 1
    assert bleu(["THE CAT SAT DOWN"], ["the cat sat down"], lowercase=True).value == pytest.approx(100)


def test_details_and_words():
    found = bleu(HYPOTHESES, REFERENCES)
    assert found.details["hypothesis_length"] < found.details["reference_length"]
    assert 0 < found.details["brevity_penalty"] < 1
    assert str(found).startswith(f"{found.value:.1f} (nrefs:1|")


def test_nothing_said_scores_nothing():
    assert bleu([""], ["a b c d"]).value == 0
    assert chrf([""], ["a b c d"]).value == 0


def test_sentences_by_themselves():
    import sacrebleu

    found = sentence_scores(HYPOTHESES, REFERENCES)
    assert found == pytest.approx(
        [sacrebleu.sentence_chrf(h, [r]).score for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    )
    found = sentence_scores(HYPOTHESES, [REFERENCES, OTHERS], "bleu")
    assert found == pytest.approx(
        [
            sacrebleu.sentence_bleu(h, list(r)).score
            for h, r in zip(HYPOTHESES, zip(REFERENCES, OTHERS, strict=True), strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("hypotheses", "references", "words"),
    [
        ([], [], "hypotheses is empty"),
        (["a"], ["a", "b"], "each of the 1 hypotheses, not 2"),
        (["a", "b"], [["a", "b"], ["a"]], "one reference of list 1 for each of the 2 hypotheses, not 1"),
        (["a", None], ["a", "b"], "hypothesis 1 must be text, not NoneType"),
        ([["a"]], ["a"], "hypothesis 0 must be text, not list; join its tokens"),
        ("a text", ["a"], "lists of sentences, not a single text"),
    ],
)
def test_refusals(hypotheses, references, words):
    for score in (bleu, chrf):
        with pytest.raises(SofttargetsError, match=words):
            score(hypotheses, references)


def test_a_missing_package_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(SofttargetsError, match=r"need sacrebleu.*pip install 'softtargets\[translation\]'"):
        bleu(["a"], ["a"])
