"""``softtargets translate`` from files to translations, on digits that are spelt out."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import shlex
import sys
from pathlib import Path

import pytest
import sacrebleu

from cli.command import ran
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import RunStore
from softtargets.training import load_translator, train
from softtargets.translation import score as token_scores
from training.tasks.translation.counting import WORDS

SMALL = {"width": 32, "inner": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
OPTIONS = [f"--set=model.{name}={value}" for name, value in SMALL.items()]
OPTIONS += [
    "--set=data.ratio=null",
    "--set=optimiser.lr=0.01",
    "--vocabulary=60",
    "--epochs=30",
    "--device=cpu",
]


def texts(count=260):
    draw = random.Random(5)
    rows = [[draw.randrange(10) for _ in range(draw.randint(1, 9))] for _ in range(count)]
    return [" ".join(map(str, row)) for row in rows], [" ".join(WORDS[one] for one in row) for row in rows]


def write(folder, sides=None):
    """The files as users have them, one of them compressed."""
    digits, words = sides or texts()
    source, target = folder / "train.digits", folder / "train.words.gz"
    source.write_text("\n".join(digits) + "\n", encoding="utf-8")
    target.write_bytes(gzip.compress(("\n".join(words) + "\n").encode()))
    return ["--src", source, "--tgt", target]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of translate train, what it printed, and its directories."""
    folder = tmp_path_factory.mktemp("trained")
    streams = io.StringIO(), io.StringIO()
    words = ["translate", "train", *write(folder), *OPTIONS]
    words += ["--runs-dir", folder / "runs", "--data-dir", folder / "data"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        from softtargets.cli import main

        with pytest.raises(SystemExit) as leaving:
            main([str(word) for word in words])
    assert leaving.value.code == 0, streams[1].getvalue()
    return folder, *(stream.getvalue() for stream in streams)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command line in a directory of its own, with some text on standard input."""
    monkeypatch.chdir(tmp_path)

    def command(*words, given: bytes | None = None):
        if given is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        return ran(capsys, *words)

    return command


@pytest.fixture
def translate(run, trained):
    """The same with the trained run."""
    folder, out, _ = trained
    name = re.search(r"^run (\w{16}) in", out, re.M)[1]

    def command(what, *words, **more):
        return run(
            "translate", what, name[:6], "--device", "cpu", "--runs-dir", folder / "runs", *words, **more
        )

    return command


@pytest.fixture
def translator(trained):
    folder, _, _ = trained
    (entry,) = RunStore(folder / "runs").entries()
    return load_translator(RunStore(folder / "runs").get(entry.id), "cpu")


# --- train ---


def test_it_says_what_it_read_chose_and_found(trained):
    folder, out, err = trained
    for said in (
        f"Text: 260 sentence pairs of {folder / 'train.digits'} and {folder / 'train.words.gz'}; 13 are held out for "
        "validation and 13 are held out for test. The text is kept in",
        "Cleaning: 234 of 234 sentence pairs were kept",
        "Overlap: None of the 13 test sources are in the training text.",
        "Vocabulary: ",
        "pieces instead of 60, because nothing else repeats in the texts."
        if "Note:" in out
        else "Vocabulary: 60 word pieces",
        "% of the target positions in batches.",
        "Loss: label_smoothing (alpha 0.1). Moves alpha of the mass from the label to all K classes",
        "Model: tiny, chosen for 234 training pairs on a CPU",
        "Changed by --set: model.width=32",
        "On 13 test sentences, beam 5: BLEU is ",
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:",
        "nats per token and perplexity",
        "Token ECE is ",
        "token probabilities can",
        "To translate: softtargets translate decode",
    ):
        assert said in out
    assert "1 run, 0 already finished" in err  # progress


def test_the_commands_that_it_names_can_be_given(trained, run, tmp_path):
    for said in re.findall(r": softtargets (translate .*)$", trained[1], re.M):
        words = shlex.split(said)
        assert words[words.index("--runs-dir") + 1] == str(trained[0] / "runs")
        if words[1] == "decode":
            words[words.index("--in") + 1] = str(trained[0] / "train.digits")
        code, _, err = run(*words, "--beam", 1)
        assert code == 0, err
    assert (tmp_path / "reports").is_dir()


def test_it_has_learnt_something(trained):
    found = re.search(r"BLEU is ([\d.]+) ", trained[1])
    assert float(found[1]) > 15


def test_the_same_text_is_the_same_run_however_it_is_given(trained, run, tmp_path):
    folder, out, _ = trained
    table = tmp_path / "pairs.tsv"
    table.write_text(
        "".join(f"{one}\t{other}\r\n" for one, other in zip(*texts(), strict=True)), encoding="utf-8"
    )
    where = ("--runs-dir", folder / "runs", "--data-dir", folder / "data")
    code, again, err = run("translate", "train", "--tsv", table, *OPTIONS, *where)
    assert code == 0
    assert "1 run, 1 already finished" in err
    assert again.splitlines()[-3:] == out.splitlines()[-3:]
    assert len(list((folder / "data").iterdir())) == 1
    (entry,) = RunStore(folder / "runs").entries()
    assert entry.id in again


def test_other_text_is_another_recipe(run, tmp_path):
    digits, words = texts()
    found = []
    for sides in ((digits, words), (digits, [*words[:-1], "neun"])):
        code, out, _ = run("translate", "train", *write(tmp_path, sides), *OPTIONS, "--dry-run", "--json")
        assert code == 0
        found.append(json.loads(out))
    first, second = found
    assert first["id"] != second["id"]
    assert first["recipe"]["data"]["digest"] != second["recipe"]["data"]["digest"]
    assert first["recipe"]["model"] == second["recipe"]["model"]


def test_a_dry_run_prints_a_recipe_and_writes_nothing(run, tmp_path):
    words = [
        *write(tmp_path),
        "--loss",
        "labo",
        "--alpha",
        "0.2",
        "--set",
        "regulariser.tau=1.15",
        "--seed",
        "4",
    ]
    code, out, err = run("translate", "train", *words, "--dry-run", "--data-dir", tmp_path / "data")
    assert (code, err) == (0, "")
    recipe = Recipe.from_yaml(out)
    assert recipe.id in out.splitlines()[0]
    assert (recipe.regulariser.alpha, recipe.regulariser.tau, recipe.seed) == (0.2, 1.15, 4)
    assert "# Loss: labo (" in out
    assert not (tmp_path / "data").exists()
    assert not (tmp_path / "runs").exists()


def test_what_is_given_for_test_and_validation_is_not_held_out(run, tmp_path):
    sides = texts(60)
    for name, some in (("valid", slice(0, 10)), ("test", slice(10, 25))):
        for ending, side in zip(("a", "b"), sides, strict=True):
            (tmp_path / f"{name}.{ending}").write_text("\n".join(side[some]) + "\n", encoding="utf-8")
    words = write(tmp_path, tuple(side[25:] for side in sides))
    words += [
        "--valid-src",
        "valid.a",
        "--valid-tgt",
        "valid.b",
        "--test-src",
        "test.a",
        "--test-tgt",
        "test.b",
    ]
    code, out, _ = run("translate", "train", *words, "--dry-run")
    assert code == 0
    assert "35 sentence pairs of" in out
    assert "10 are given for validation and 15 are given for test" in out
    assert "chosen for 35 training pairs" in out


def test_a_corpus_of_the_catalogue_can_be_named(run, tmp_path):
    (tmp_path / "multi30k").mkdir()
    for language, side in zip(("en", "fr"), texts(50), strict=True):
        content = gzip.compress(("\n".join(side) + "\n").encode())
        (tmp_path / "multi30k" / f"train.{language}.gz").write_bytes(content)
    words = ("--corpus", "multi30k", "--from", "en", "--to", "fr", "--dry-run", "--data-dir", tmp_path)
    code, out, _ = run("translate", "train", *words)
    assert code == 0
    assert "Text: multi30k, en to fr, 50 training pairs." in out
    recipe = Recipe.from_yaml(out)
    assert (recipe.data.name, recipe.data.source, recipe.data.target) == ("multi30k", "en", "fr")
    assert recipe.data.vocabulary == 8000


def test_a_training_that_is_out_of_time_goes_on(run, tmp_path):
    words = ["translate", "train", *write(tmp_path, texts(80)), *OPTIONS, "--epochs", "100000"]
    words += ["--for", "3s", "--data-dir", "data"]
    code, _, err = run(*words)
    assert code == 3
    assert re.search(
        r"the time is up and 1 run is not finished; run \w{16} is saved; the same command resumes it", err
    )
    code, _, err = run(*words)
    assert code == 3
    assert "resumed at step" in err


def test_ctrl_c_says_how_to_go_on(run, tmp_path, monkeypatch):
    import softtargets.training as module

    def pressed(recipes, store, **_):
        (store.root / recipes[0].id).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "train", pressed)
    code, _, err = run("translate", "train", *write(tmp_path), *OPTIONS, "--data-dir", "data")
    assert code == 130
    assert re.search(r"^interrupted; run \w{16} is saved; the same command resumes it$", err, re.M)


def test_results_for_scripts(trained, run):
    folder, out, _ = trained
    where = ("--runs-dir", folder / "runs", "--data-dir", folder / "data")
    files = ("--src", folder / "train.digits", "--tgt", folder / "train.words.gz")
    code, printed, _ = run("translate", "train", *files, *OPTIONS, *where, "--json")
    assert code == 0
    found = json.loads(printed)
    assert f"BLEU is {found['test']['bleu']['value']:.1f} " in out
    assert found["test"]["sentences"] == 13
    kept = RunStore(folder / "runs").get(found["id"]).compact("test")
    assert found["test"]["tokens"]["nll"] == pytest.approx(kept.costs.mean(), rel=1e-3)
    assert found["test"]["tokens"]["accuracy"] == pytest.approx(kept.right.mean())


BAD = b"eins\nzw\xffei\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "there is no text to train on: give --src and --tgt, or --tsv, or --corpus"),
        (("--src", "a"), "--tgt is missing; it goes with --src"),
        (("--src", "a", "--tgt", "nowhere"), "nowhere does not exist"),
        (("--src", "a", "--tgt", "a"), "--src and --tgt are the same file"),
        (("--src", "a", "--tgt", "copy"), "source and target are the same text"),
        (
            ("--src", "a", "--tgt", "short"),
            "a has 30 lines but short has 29; aligned files need the same number",
        ),
        (("--src", "a", "--tgt", "bad"), "bad line 2 is not valid UTF-8 (byte 3 of the line"),
        (("--src", "few", "--tgt", "few2"), "3 sentence pairs are too few to hold some out"),
        (("--src", "empty", "--tgt", "empty2"), "have no sentences"),
        (("--tsv", "a"), "a line 1 has 1 tab-separated columns, expected 2"),
        (("--tsv", "a", "--src", "a"), "--tsv has both languages; leave out --src and --tgt"),
        (("--src", "a", "--tgt", "b", "--test-src", "a"), "--test-tgt is missing; it goes with --test-src"),
        (("--src", "a", "--tgt", "b", "--from", "en"), "--from is only for --corpus"),
        (("--src", "a", "--tgt", "b", "--loss", "lapo"), "not lapo (did you mean 'labo'?)"),
        (("--src", "a", "--tgt", "b", "--loss", "distillation"), "--loss distillation needs a teacher"),
        (
            ("--src", "a", "--tgt", "b", "--loss", "focal", "--alpha", "1"),
            "--alpha: no such field of 'focal'",
        ),
        (
            ("--src", "a", "--tgt", "b", "--alpha", "2"),
            "--alpha: 2.0 is out of range: must be at least 0 and at",
        ),
        (
            ("--src", "a", "--tgt", "b", "--size", "huge"),
            "--size must be one of tiny, small, iwslt, base, not huge",
        ),
        (("--src", "a", "--tgt", "b", "--set", "modle.width=3"), "did you mean 'model'?"),
        (("--src", "a", "--tgt", "b", "--device", "tpu"), "device"),
        (("--corpus", "multi3k"), "--corpus must be one of multi30k, tatoeba"),
        (("--corpus", "multi30k", "--src", "a"), "--src and --corpus cannot be used together"),
        (
            ("--corpus", "multi30k", "--from", "en", "--to", "en"),
            "en is also the source",
        ),
        (("--corpus", "multi30k", "--to", "nl"), "--to: "),
    ],
)
def test_mistakes_are_named_with_what_to_do(run, tmp_path, words, says):
    digits, spelt = texts(30)
    for name, lines in {"a": digits, "b": spelt, "copy": digits, "short": spelt[1:]}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "few").write_text("1\n2\n3\n")
    (tmp_path / "few2").write_text("eins\nzwei\ndrei\n")
    for name in ("empty", "empty2"):
        (tmp_path / name).touch()
    (tmp_path / "bad").write_bytes(BAD)
    code, out, err = run("translate", "train", *words, "--data-dir", tmp_path / "data")
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_too_small_a_vocabulary_is_named_as_its_option(run, tmp_path):
    words = [*write(tmp_path), *OPTIONS, "--vocabulary", 8]
    code, out, err = run("translate", "train", *words, "--data-dir", "data")
    assert (code, out) == (2, "")
    assert err.startswith("error: --vocabulary: must be at least 3")
    assert "different characters, not 8" in err


def test_without_the_packages_one_line_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    code, _, err = run("translate", "train", *write(tmp_path), *OPTIONS, "--data-dir", "data")
    assert code == 2
    assert err == (
        "error: translation needs the package tokenizers; install it with: pip install 'softtargets[translation]'\n"
    )
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    code, out, err = run("translate", "train", *write(tmp_path), *OPTIONS, "--data-dir", "data")
    assert (code, out) == (2, "")
    assert err.startswith("error: scores of translations need sacrebleu")


# --- decode ---


def test_lines_go_in_and_come_out_in_order(translate, translator):
    lines = ["1 2 3", "", "9", "4 4 4 4 4 4 4", "   ", "0 1"]
    code, out, err = translate("decode", given="\n".join(lines).encode())
    assert (code, err) == (0, "")
    assert out.split("\n") == [*translator.translate(lines), ""]
    assert out.split("\n")[1] == out.split("\n")[4] == ""


def test_options_of_the_search_are_those_of_decode(translate, translator):
    given = ["3 1", "2 2", "9 8 7 6 5"]
    words = ("--beam", 2, "--length-penalty", 0.6, "--penalty", "google", "--temperature", 1.7)
    _, out, _ = translate("decode", *words, given="\n".join(given).encode())
    options = {"beam": 2, "length_penalty": 0.6, "penalty": "google", "temperature": 1.7}
    assert out.splitlines() == translator.translate(given, **options)


def test_several_translations_have_ranks_and_scores(translate):
    code, out, _ = translate("decode", "--nbest", 3, given=b"1 2\n\n7\n")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3", "1", "1", "2", "3"]
    scores = [float(row[1]) for row in rows]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    assert rows[3] == ["1", "0.000000", ""]
    _, best, _ = translate("decode", "--scores", given=b"1 2\n\n7\n")
    assert best.splitlines() == ["\t".join(row[1:]) for row in rows if row[0] == "1"]


def test_files_are_read_and_written(translate, tmp_path):
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"1 2\n3\n"))
    code, out, _ = translate("decode", "--in", "in.gz", "--out", "out.txt")
    assert (code, out) == (0, "")
    first = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert first == translate("decode", given=b"1 2\n3\n")[1]
    code, _, err = translate("decode", "--in", "in.gz", "--out", "out.txt")
    assert code == 2
    assert "out.txt exists already; choose another name, or use --overwrite" in err
    (tmp_path / "in.txt").write_text("8\n")
    assert translate("decode", "--in", "in.txt", "--out", "out.txt", "--overwrite")[0] == 0
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") != first


def test_blocks_change_nothing(translate, monkeypatch):
    given = b"1 2\n3\n\n4 5 6\n7 8\n"
    whole = translate("decode", "--sample", "--seed", 3, given=given)
    monkeypatch.setattr("softtargets.cli.translate.BLOCK", 2)
    assert translate("decode", given=given)[1].count("\n") == 5
    assert (
        translate("decode", "--sample", "--seed", 3, given=given)[1].splitlines()[0]
        == whole[1].splitlines()[0]
    )


def test_drawn_translations_depend_on_the_seed(translate):
    given = b"1 2 3 4 5\n" * 6
    hot = ("decode", "--sample", "--temperature", 3)
    first, again, other = (translate(*hot, "--seed", seed, given=given)[1] for seed in (0, 0, 1))
    assert first == again != other
    assert len(set(first.splitlines())) > 1
    assert translate(*hot, "--top-k", 1, given=given)[1] == translate("decode", "--beam", 1, given=given)[1]


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        ((), BAD, "standard input line 2 is not valid UTF-8"),
        (("--in", "nowhere"), None, "nowhere does not exist"),
        (("--out", "no/where"), b"1\n", "cannot write no/where: no is not a directory"),
        (("--nbest", 6), b"1\n", "--nbest must be from 1 to the beam, 5, not 6"),
        (("--nbest", 2, "--sample"), b"1\n", "--nbest must be 1 with --sample"),
        (("--penalty", "lenght"), b"1\n", "--penalty must be length or google, not lenght"),
        (("--top-k", 2), b"1\n", "--top-k needs --sample"),
        (("--temperature", 0), b"1\n", "--temperature must be above 0, not 0.0"),
        (("--temperature", 1e-40), b"1\n", "--temperature must be at least 1e-30 and finite, not 1e-40"),
        (
            ("--temperature", "inf", "--sample"),
            b"1\n",
            "--temperature must be at least 1e-30 and finite, not inf",
        ),
    ],
)
def test_what_cannot_be_translated_is_refused(translate, words, given, says):
    code, out, err = translate("decode", *words, given=given)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_sentence_that_is_too_long_is_cut_and_said(translate):
    code, out, err = translate("decode", "--beam", 1, given=b"1 " * 3000 + b"\n2\n")
    assert code == 0
    assert out.count("\n") == 2
    assert "note: 1 of 2 sources have more than the 1024 tokens that the model can take" in err


def test_characters_that_the_model_has_never_seen_are_said(translate, monkeypatch):
    monkeypatch.setattr("softtargets.cli.translate.BLOCK", 2)  # which are counted over all blocks
    code, out, err = translate("decode", "--beam", 1, given="1 2\n1 日\n\n2\u200b 日\n".encode())
    assert code == 0
    assert out.count("\n") == 4
    assert (
        "note: 2 of 4 lines have characters that the training text does not have: 日 (U+65E5), U+200B. The model reads "
        "them as unknown\n"
    ) in err
    assert "note" not in translate("decode", "--beam", 1, given=b"1 2\n")[2]


@pytest.mark.parametrize("word", ["abcd", "nothing-like-a-run"])
def test_a_run_that_is_not_there_is_refused(run, tmp_path, word):
    code, _, err = run("translate", "decode", word, "--runs-dir", tmp_path / "runs", given=b"1\n")
    assert code == 2
    assert word in err
    assert "runs list" in err


def test_a_run_of_images_cannot_translate(run, tmp_path):
    recipe = Recipe(data=Digits(limit=32), model=MLP(hidden=(4,)), epochs=1, batch=16)
    (one,) = train([recipe], RunStore(tmp_path / "runs"), device="cpu")
    code, _, err = run("translate", "decode", one.directory, given=b"1\n")
    assert code == 2
    assert (
        f"run {one.id} was trained on digits, which has images, so it cannot translate; choose a run" in err
    )


def test_a_light_run_cannot_translate_and_says_what_to_do(trained, run, tmp_path):
    folder, out, _ = trained
    name = re.search(r"^run (\w{16}) in", out, re.M)[1]
    assert run("runs", "pack", tmp_path / "packed.zip", "--runs-dir", folder / "runs")[0] == 0
    assert run("runs", "merge", tmp_path / "packed.zip", "--runs-dir", tmp_path / "light")[0] == 0
    code, _, err = run("translate", "decode", name, "--runs-dir", tmp_path / "light", given=b"1\n")
    assert code == 2
    assert f"run {name} is light: its weights were left out" in err
    assert "train it again" in err


# --- score ---


def test_calibrate_says_which_command_measures_a_model_that_translates(trained, run):
    folder, out, _ = trained
    name = re.search(r"^run (\w{16}) in", out, re.M)[1]
    code, _, err = run("calibrate", name, "--runs-dir", folder / "runs")
    assert code == 2
    assert f"softtargets translate score {name} --src FILE --ref FILE" in err
    code, _, err = run("view", name, "--runs-dir", folder / "runs")
    assert (code, err.count("\n")) == (2, 1)
    assert f"run {name} is a translation model" in err


@pytest.fixture
def held_out(trained):
    (folder,) = (trained[0] / "data").iterdir()
    return folder / "test.source", folder / "test.target"


def test_two_files_are_scored_as_sacrebleu_does(run, tmp_path):
    hypotheses, references = ["the cat sat on the mat", "A dog", ""], ["the cat sat on a mat", "a dog", "x"]
    for name, lines in (("hyp", hypotheses), ("ref", references)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    code, out, _ = run("translate", "score", "hyp", "ref", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["bleu"]["value"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)
    assert found["chrf"]["value"] == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score)
    code, out, _ = run("translate", "score", "-", "ref", "--lowercase", given=(tmp_path / "hyp").read_bytes())
    assert code == 0
    bleu, chrf = out.splitlines()[1:]
    assert "case:lc" in bleu
    assert chrf.startswith("chrF2")
    lowered = sacrebleu.corpus_bleu(hypotheses, [references], lowercase=True).score
    assert f"{lowered:.1f} (" in bleu


def test_a_run_is_scored_with_a_page(translate, translator, held_out, tmp_path):
    source, target = held_out
    words = ("--src", source, "--ref", target, "--temperatures", "0.5,1", "--beam", 2)
    code, out, _ = translate("score", *words, "--json")
    assert code == 0
    found = json.loads(out)
    sources, references = (path.read_text(encoding="utf-8").splitlines() for path in held_out)
    texts = translator.translate(sources, beam=2)
    assert found["bleu"]["value"] == pytest.approx(sacrebleu.corpus_bleu(texts, [references]).score)
    encode = translator.tokeniser.encode
    tokens = [
        one for row in token_scores(translator.model, encode(sources), encode(references)) for one in row
    ]
    assert found["tokens"]["nll"] == pytest.approx(-sum(tokens) / len(tokens), rel=1e-3)
    decoded = [row["temperature"] for row in found["temperatures"] if row["bleu"] is not None]
    assert decoded == [0.5, 1.0]
    page = Path(found["report"])
    assert page.parent.name == f"translate-{found['run']}-test"
    assert "Probabilities of tokens" in page.read_text(encoding="utf-8")
    kept = json.loads((page.parent / "results.json").read_text(encoding="utf-8"))
    assert kept["command"].startswith("softtargets translate score ")
    code, out, _ = translate("score", *words, "--out", tmp_path / "page")
    assert code == 0
    assert re.search(r"^BLEU +[\d.]+ \([\d.]+ to [\d.]+\)  nrefs:1", out, re.M)
    assert "Token probabilities: " in out
    assert f"page: {tmp_path / 'page' / 'index.html'}" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("hyp",), "the references are missing; give HYP and REF, or a run with --src and --ref"),
        (
            ("hyp", "longer"),
            "hyp has 1 lines but longer has 2; there must be one translation for each reference",
        ),
        (("none", "none"), "there is nothing to score: the list of hypotheses is empty"),
        (("hyp", "bad"), "bad line 2 is not valid UTF-8"),
        (("abcd", "--src", "hyp"), "--ref is missing; it goes with --src"),
        (("abcd", "hyp", "--src", "hyp", "--ref", "hyp"), "hyp is one file too many"),
        (("abcd", "--src", "hyp", "--ref", "longer"), "hyp has 1 lines but longer has 2"),
        (
            ("abcd", "--src", "hyp", "--ref", "hyp", "--temperatures", "1,hot"),
            "--temperatures must be numbers above",
        ),
        (
            ("abcd", "--src", "hyp", "--ref", "hyp", "--temperatures", "0"),
            "--temperatures must be numbers above 0",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused(run, tmp_path, words, says):
    for name, content in {"hyp": b"a\n", "longer": b"a\nb\n", "none": b"", "bad": BAD}.items():
        (tmp_path / name).write_bytes(content)
    code, out, err = run("translate", "score", *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


# --- real text ---


@pytest.mark.realdata
def test_a_slice_of_multi30k_from_text_to_page(run, tmp_path):
    from softtargets.data import load_pairs
    from softtargets.exceptions import DataError

    try:
        pairs = load_pairs("multi30k", "en", "de", "train")
    except DataError as missing:
        pytest.skip(str(missing))
    (tmp_path / "en").write_text("\n".join(pairs.sources[:600]) + "\n", encoding="utf-8")
    (tmp_path / "de").write_text("\n".join(pairs.targets[:600]) + "\n", encoding="utf-8")
    train_words = ["--src", "en", "--tgt", "de", *OPTIONS[:6], "--vocabulary", "600", "--epochs", "4"]
    code, out, _ = run("translate", "train", *train_words, "--data-dir", "data", "--device", "cpu")
    assert code == 0
    assert "30 are held out for validation and 30 are held out for test" in out
    assert "Vocabulary: 600 word pieces" in out
    name = re.search(r"^run (\w{16}) in", out, re.M)[1]
    page = re.search(r"^For a page about it: softtargets (.*)$", out, re.M)[1]
    code, out, _ = run(*page.split(), "--temperatures", "1", "--beam", "2", "--device", "cpu")
    assert code == 0
    assert "Token ECE: " in out
    code, out, _ = run(
        "translate", "decode", name, "--beam", "1", "--device", "cpu", given=b"A man sleeps.\n"
    )
    assert code == 0
    assert out.strip()
