"""Every page of the translation studies of Müller et al. and the replication, made of models that were trained."""

from __future__ import annotations

import json
import re

import pytest

from softtargets.claims import judge
from softtargets.runs import export_logs
from softtargets.studies import STUDIES, Results, find_study, redraw_study, run_study
from softtargets.studies.translation.corpora import CORPORA, deviations

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has:UserWarning")
NAMES = ("muller-fig3", "muller-fig4", "muller-fig7", "re-fig4", "re-fig5")
FIGURES = {
    "muller-fig3": {"reliability_multi30k"},
    "muller-fig4": {"temperatures_multi30k"},
    "muller-fig7": {"planes_words_multi30k"},
    "re-fig4": {"reliability_without_padding", "reliability_with_padding"},
    "re-fig5": {"temperatures_proper", "temperatures_replicated"},
}


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_made_and_drawn_again_without_the_models(name, store, data_dir, tmp_path):
    study = find_study(STUDIES, name)
    settings = study.settings(1, {"size": "small"})
    how = {"command": "c", "train": None, "device": "cpu"}
    page = run_study(study, settings, store, tmp_path / "page", data_dir=data_dir, **how)
    told = json.loads((page.parent / "results.json").read_text())
    assert not told["warnings"]
    assert "The small size decides nothing" in page.read_text()
    assert {path.stem for path in (page.parent / "figures").glob("*.svg")} == FIGURES[name]
    assert not re.search(r"\bnan\b", page.read_text())
    wanted = [store.find(trial.recipe) for trial in study.trials(settings)]
    export_logs(wanted, page.parent / "logs.jsonl.gz")
    redrawn = redraw_study(study, page.parent, tmp_path / "redrawn", command="r")
    for figure in FIGURES[name]:
        path = f"figures/{figure}.svg"
        assert (redrawn.parent / path).read_bytes() == (page.parent / path).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_before_anything_is_trained_claims_are_not_run_yet(name):
    study = find_study(STUDIES, name)
    made = study.claims(Results(()))
    assert made
    assert {one.verdict for one in judge(made)} == {"not run yet"}
    assert "not known yet" in study.findings(Results(())).answer.lower()


def test_studies_share_their_runs():
    def recipes(name, size="full"):
        study = find_study(STUDIES, name)
        return {trial.recipe.id for trial in study.trials(study.settings(3, {"size": size}))}

    assert recipes("muller-fig3") == recipes("muller-fig4") == recipes("muller-fig7")
    assert recipes("re-fig5") < recipes("re-fig4")
    assert recipes("re-fig5", "small") < recipes("re-fig4", "small")
    assert len(recipes("muller-fig3", "wmt")) == 6


@pytest.mark.parametrize("corpus", ["multi30k", "tatoeba"])
def test_pages_say_which_weights_are_measured(corpus):
    """What the page tells of a checkpoint is what the recipe does."""
    recipe = CORPORA[corpus].recipe
    title = CORPORA[corpus].title
    (told,) = (text for text in deviations(Results(())) if "is measured" in text)
    said = next(part for part in re.split(r"(?<=\.) (?=On |The )", told) if part.startswith(f"On {title} "))
    layers = (
        f"{recipe.model.encoder_layers} + {recipe.model.decoder_layers} layers of width {recipe.model.width}"
    )
    assert layers in said
    assert f"dropout {recipe.model.dropout:g}" in said
    if recipe.average_last:
        assert recipe.best_by is None
        assert "the mean of the last five epochs" in said
        assert recipe.average_last == 5
    else:
        (probe,) = recipe.probes
        assert recipe.best_by == "validation_bleu"
        assert f"the checkpoint with the best BLEU on {probe.sentences:,} validation sentences" in said
