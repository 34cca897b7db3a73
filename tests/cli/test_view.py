from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from inspection.view.penultimate import by_hand, examples, nc1_by_hand, nc4_by_hand, net
from softtargets.cli import main
from softtargets.cli.view import guessed, panels_of

RECIPE = """
data: {name: digits, validation: 100, limit: 150}
model: {name: mlp, hidden: [16]}
optimiser: {name: sgd, lr: 1e-1}
epochs: 2
batch: 32
"""


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command line in this process: (exit code, stdout, stderr)."""

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(["view", *words])
        out, err = capsys.readouterr()
        return int(leaving.value.code or 0), out, err

    return run


def save(name: str, layer, found, **more) -> None:
    arrays = {"activations": found[0], "labels": found[1], "weight": layer[0], "bias": layer[1], **more}
    np.savez(name, **{key: value for key, value in arrays.items() if value is not None})


def measured(out: str):
    return json.loads(out)["panels"]


def test_one_file_is_one_panel_with_numbers_computed_by_hand(run, directory):
    layer = net()
    found = examples(layer)
    save("resnet_test.npz", layer, found)
    code, out, err = run("resnet_test.npz", "--classes", "3,0,5", "--json")
    assert (code, err) == (0, "")
    (panel,) = measured(out)
    assert (panel["net"], panel["split"]) == ("resnet", "test")
    for name, value in by_hand(*found, layer[0], [3, 0, 5]).items():
        assert panel["three_classes"][name] == pytest.approx(value), name
    assert panel["all_classes"]["nc1"] == pytest.approx(nc1_by_hand(*found))
    means = np.stack([found[0][found[1] == c].mean(0) for c in range(6)])
    assert panel["all_classes"]["nc4"] == pytest.approx(nc4_by_hand(found[0], means, *layer[:2]))
    assert json.loads(out)["report"] == "reports/view-resnet_test/index.html"
    assert (directory / "reports/view-resnet_test/index.html").exists()


def test_padding_is_left_out(run):
    layer = net()
    activations, labels = examples(layer)
    padded = np.concatenate([activations, np.full_like(activations[:5], np.nan)])
    save("plain_test.npz", layer, (activations, labels))
    save("padded_test.npz", layer, (padded, np.concatenate([labels, np.full(5, -100)])))
    code, _, err = run("padded_test.npz", "--classes", "3,0,5")
    assert code != 0
    assert "use --ignore-index=-100" in err
    _, plain, _ = run("plain_test.npz", "--classes", "3,0,5", "--json")
    code, out, _ = run("padded_test.npz", "--classes", "3,0,5", "--ignore-index", "-100", "--json")
    assert code == 0
    assert measured(out)[0]["three_classes"] == measured(plain)[0]["three_classes"]
    assert "--ignore-index -100" in Path("reports/view-padded_test/index.html").read_text()


def test_files_are_grouped_into_nets_by_their_names(run):
    for net_name, seed in (("hard", 0), ("smooth", 1)):
        for split in ("test", "train"):
            save(f"{net_name}_{split}.npz", net(seed), examples(net(seed)))
    code, out, _ = run(
        "hard_test.npz", "hard_train.npz", "smooth_test.npz", "smooth_train.npz", "--out", "page"
    )
    assert code == 0
    rows = [line.split()[:2] for line in out.splitlines() if re.match(r"(hard|smooth) +(train|test)", line)]
    assert rows == [["hard", "train"], ["hard", "test"], ["smooth", "train"], ["smooth", "test"]]
    assert "smooth against hard on train" in out
    assert f"page: {Path('page').resolve()}/index.html" in out
    text = Path("page/index.html").read_text()
    assert "softtargets view hard_test.npz hard_train.npz smooth_test.npz smooth_train.npz --out page" in text


def test_nets_may_be_named_and_their_last_layers_lie_elsewhere(run):
    for net_name, seed in (("a", 0), ("b", 1)):
        activations, labels = examples(net(seed))
        np.savez(f"{net_name}.npz", activations=activations, labels=labels)
        np.savez(f"{net_name}_model.npz", **{"fc.weight": net(seed)[0], "fc.bias": net(seed)[1]})
    words = ["hard:train=a.npz", "smooth:train=b.npz", "--weights", "hard=a_model.npz"]
    code, out, _ = run(*words, "--weights", "smooth=b_model.npz", "--json")
    assert code == 0
    hard, smooth = measured(out)
    assert (hard["net"], smooth["net"]) == ("hard", "smooth")
    classes = json.loads(out)["classes"]
    for panel, seed in ((hard, 0), (smooth, 1)):
        expected = by_hand(*examples(net(seed)), net(seed)[0], classes)
        assert panel["three_classes"]["spread"] == pytest.approx(expected["spread"])
    code, _, err = run(*words, "--weights", "smoth=b_model.npz")
    assert code == 2
    code, _, err = run("hard:train=a.npz", "--weights", "a_model.npz", "--weights", "smoth=b_model.npz")
    assert (code, err.count("\n")) == (2, 1)
    assert "there is no panel of this name; there are hard:train" in err


def test_labels_may_lie_elsewhere_and_arrays_have_other_names(run):
    layer = net()
    activations, labels = examples(layer)
    np.savez("a.npz", pooled=activations, mine=layer[0])
    np.savez("b.npz", answers=labels)
    options = (
        "--activations-name",
        "pooled",
        "--weights-name",
        "mine",
        "--labels",
        "b.npz",
        "--labels-name",
        "answers",
    )
    code, out, err = run("a.npz", *options, "--json")
    assert (code, err) == (0, "")
    assert measured(out)[0]["all_classes"]["nc1"] == pytest.approx(nc1_by_hand(activations, labels))
    code, _, err = run("a.npz", "--labels", "b.npz")
    assert code == 2
    assert "--activations-name" in err


def test_classes_by_name(run):
    save("a.npz", net(), examples(net()))
    Path("names.txt").write_text("cat\ndog\nship\nbird\nfrog\ndeer\n")
    code, out, _ = run("a.npz", "--names", "names.txt", "--classes", "frog,cat,deer", "--json")
    assert code == 0
    assert json.loads(out)["classes"] == [4, 0, 5]
    assert json.loads(out)["names"] == ["frog", "cat", "deer"]
    assert "frog" in Path("reports/view-a/index.html").read_text()


def test_a_run_is_shown_by_its_id(run):
    from softtargets.recipes import Recipe
    from softtargets.runs import RunStore
    from softtargets.training import train

    Path("recipe.yaml").write_text(RECIPE)
    (stored,) = train(
        [Recipe.load(Path("recipe.yaml"))], RunStore("runs"), device="cpu", keep=("train", "test")
    )
    code, out, err = run(stored.id[:6], "--classes", "0,1,2", "--json")
    assert (code, err) == (0, "")
    panels = measured(out)
    assert [panel["split"] for panel in panels] == ["train", "test"]
    assert panels[0]["net"] == f"cross entropy ({stored.id[:4]})"
    weights = stored.weights()["head.weight"].double().numpy()
    for panel in panels:
        kept = stored.predictions(panel["split"])
        activations, labels = kept.features.double().numpy(), kept.labels.numpy()
        expected = by_hand(activations, labels, weights, [0, 1, 2])
        assert panel["three_classes"]["spread"] == pytest.approx(expected["spread"], rel=1e-5)
    words = (f"mine={stored.id}:test", f"runs/{stored.id}")
    found = [(one.net, one.split) for word in words for one in panels_of(word, {}, {}, None)]
    assert found == [("mine", "test"), (panels[0]["net"], "train"), (panels[0]["net"], "test")]
    code, _, err = run(f"{stored.id}:elsewhere")
    assert code == 2
    assert "has no predictions on 'elsewhere'" in err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nowhere.npz"], "nowhere.npz does not exist"),
        (["=a.npz"], "write it as MODEL:SPLIT=FILE"),
        (["a.npz", "--pick", "near"], "--pick must be close, mixed or far, not near"),
        (["a.npz", "--units", "inches"], "--units must be centres, templates or activations, not inches"),
        (["a.npz", "--classes", "0,1"], "give three classes"),
        (["a.npz", "--classes", "0,1,6"], "no class '6' of 6"),
        (["a.npz", "--classes", "0,1,1"], "three different classes"),
        (["a.npz", "--names", "x,y"], "2 names, but there are 6 classes"),
        (["a.npz", "net:train=a.npz", "net:train=a.npz"], "two panels are called 'net, train'"),
        (["x=a.npz", "x:other=b.npz"], "different last layers"),
        (["a.npz", "--weights", "a.npz", "--weights", "b.npz"], "--weights is given twice for all panels"),
        (["flat.npz"], "flat: the templates of classes"),
        (["dead.npz"], "dead: the means of all classes coincide"),
        (["abcd0123"], "no run 'abcd0123'"),
    ],
)
def test_a_mistake_is_one_line(run, words, expected):
    save("a.npz", net(0), examples(net(0)))
    save("b.npz", net(1), examples(net(1)))
    line = (np.arange(6.0)[:, None] * np.ones((1, 5)), np.zeros(6), net()[2])
    save("flat.npz", line, examples(line))
    save("dead.npz", net(), (np.ones((240, 5)), examples(net())[1]))
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert expected in err


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("hard_train.npz", ("hard", "train")),
        ("label-smoothing-0.1-held-out.safetensors", ("label-smoothing-0.1", "held-out")),
        ("validation.resnet.pt", ("resnet", "validation")),
        ("somewhere/smooth/test.npz", ("smooth", "test")),
        ("latest.npz", ("latest", "")),
    ],
)
def test_net_and_split_from_the_name_of_a_file(path, expected):
    assert guessed(Path(path)) == expected


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(run):
    save("alpha=0.1_train.npz", net(), examples(net()))
    code, out, _ = run("alpha=0.1_train.npz", "--json")
    assert code == 0
    assert measured(out)[0]["net"] == "alpha=0.1"
