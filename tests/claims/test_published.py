from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

import pytest
import yaml

from softtargets.claims import paper as look_up
from softtargets.claims import published

TEXTS = {
    file.name.removesuffix(".yaml"): file.read_text(encoding="utf-8")
    for file in files("softtargets.claims").joinpath("papers").iterdir()
}

# How many cells with something in them each table has, counted in the papers: rows x columns, and what is beside them.
CELLS = {
    "Müller et al. 2019, table 1": 5 * 2 + 1,  # one cell has two numbers
    "Müller et al. 2019, table 2": 3 * 2,
    "Müller et al. 2019, table 3": 3 * 5,  # two of the three columns have two numbers
    "Wagner et al. 2023, table 2": 8 * 5 + 3 * 2,  # own rows, quoted rows
    "Wagner et al. 2023, table 3": 9 * 7 + 2 * 4,
    "Wagner et al. 2023, table 4": 4 * 2,
    "Wagner et al. 2023, table 5": 9,  # ticks, a row together
    "Chen et al. 2020, table 1": 4 * 2,
    "Lu et al. 2023, table 1": 6 * 6,
    "Lu et al. 2023, table 2": 3 * 2,
    "Lu et al. 2023, table 3": 8 * 4 * 2,
    "Lu et al. 2023, table 4": 2 * 2 * 3,
    "Lu et al. 2023, table 5": 6 * 2 * 2,
    "Lu et al. 2023, appendix D, the table": 8 * 3,
}


class Strict(yaml.SafeLoader):
    """Refuses keys given twice, which PyYAML would drop without a word."""


def without_repeats(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    repeated = {key for key in keys if keys.count(key) > 1}
    if repeated:
        raise AssertionError(f"given twice: {sorted(repeated)}")
    return {
        key: loader.construct_object(value, deep=True)
        for key, (_, value) in zip(keys, node.value, strict=True)
    }


Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, without_repeats)
WHOLE = {paper: yaml.load(text, Loader=Strict) for paper, text in TEXTS.items()}
PAPERS = {
    paper: {key: entry for key, entry in entries.items() if key != "paper"}
    for paper, entries in WHOLE.items()
}
ENTRIES = {key: entry for entries in PAPERS.values() for key, entry in entries.items()}
every_paper = pytest.mark.parametrize("paper", PAPERS)


def of_table(source):
    return {key: published(key) for key, entry in ENTRIES.items() if entry["source"] == source}


def test_the_strict_loader_would_notice_a_repeated_key():
    with pytest.raises(AssertionError, match="given twice"):
        yaml.load("{a: 1, b: 2, a: 3}", Loader=Strict)


@every_paper
def test_no_line_of_a_file_is_lost(paper):
    assert len(WHOLE[paper]) == sum(1 for line in TEXTS[paper].splitlines() if line and line[0] not in " #")


@every_paper
def test_every_figure_has_its_words_its_setting_and_its_source(paper):
    for key, fields in PAPERS[paper].items():
        entry = published(key)
        told = {"printed": entry.printed, "setting": entry.setting, "source": entry.source}
        assert told == {name: fields[name] for name in told}, key
        assert all(isinstance(text, str) and text.strip() for text in told.values()), key
        assert entry.value == fields.get("value"), key


@every_paper
def test_the_value_is_the_first_number_that_was_printed(paper):
    for key, entry in PAPERS[paper].items():
        if "value" in entry:
            number = float(re.match(r"[\d.,]+", entry["printed"]).group().replace(",", ""))
            assert isinstance(entry["value"], float), key
            percent = "%" in entry["printed"]
            assert entry["value"] == pytest.approx(number / 100 if percent else number, rel=1e-12), key


@every_paper
def test_a_key_starts_with_its_file_and_the_source_has_its_year(paper):
    year = re.fullmatch(r"[a-z]+-(\d{4})", paper).group(1)
    for key, entry in PAPERS[paper].items():
        assert re.fullmatch(rf"{paper}(/[a-z0-9.-]+){{1,3}}", key), key
        assert f" {year}, " in entry["source"], key


@every_paper
def test_every_paper_has_its_citation_and_its_address(paper):
    found = look_up(paper)
    assert paper.split("-")[1] in found.citation
    # The authors' response has none of its own.
    assert (
        re.fullmatch(r"https://(arxiv\.org/abs/\d{4}\.\d{5}|doi\.org/10\..+)", found.url)
        or paper == "response-2019"
    )
    assert str(found) == (f"{found.citation}, {found.url}" if found.url else found.citation)
    assert all(published(key).url == found.url for key in PAPERS[paper])


def test_every_cell_of_every_table_is_there():
    found = Counter(entry["source"] for entry in ENTRIES.values())
    assert {source: found[source] for source in CELLS} == CELLS
    assert {source for source in found if re.search(r"\btable\b", source)} == set(CELLS)


@pytest.mark.parametrize("source", CELLS)
def test_every_cell_but_ticks_has_a_value_and_a_setting_of_its_own(source):
    cells = of_table(source)
    assert all((entry.value is None) == (source == "Wagner et al. 2023, table 5") for entry in cells.values())
    places = Counter((key.split("/")[1], entry.setting) for key, entry in cells.items())
    assert max(places.values()) == 1


@pytest.mark.parametrize(("table", "base"), [("table 3", "hard"), ("table 4", "ls"), ("table 5", "hard")])
def test_gains_of_labos_tables_are_differences_of_their_cells(table, base):
    gains = 0
    for key, entry in of_table(f"Lu et al. 2023, {table}").items():
        place, method = key.rsplit("/", 1)
        gain = re.fullmatch(r"[\d.]+(?: %)? \(([+↑↓])([\d.]+)\)", entry.printed)
        assert bool(gain) == (method != base and "/time/" not in key), key
        if gain:
            difference = (entry.value - published(f"{place}/{base}").value) * (
                100 if "%" in entry.printed else 1
            )
            assert difference == pytest.approx(float(gain[2]) * (-1 if gain[1] == "↓" else 1), abs=1e-9), key
            gains += 1
    assert gains == {"table 3": 7 * 4, "table 4": 6, "table 5": 5 * 2}[table]


def test_deviations_stand_beside_the_means_that_have_one():
    deviating = {key for key, entry in ENTRIES.items() if "±" in entry["printed"]}
    assert deviating == (
        set(of_table("Lu et al. 2023, table 1"))
        | {key for key in of_table("Müller et al. 2019, table 2") if "imagenet" not in key}
        | {key for key in PAPERS["response-2019"] if "errors/" in key}
    )


def test_the_errors_of_the_response_add_up():
    for condition in ("hard", "smoothed"):
        fine, coarse, both = (
            published(f"response-2019/{kind}/cifar100/{condition}").value
            for kind in ("fine-errors", "coarse-errors", "errors")
        )
        assert fine + coarse == both


def test_quotations_are_what_was_quoted():
    quoted = {key: entry for key, entry in ENTRIES.items() if "quoted" in entry["setting"]}
    assert len(quoted) == 6 + 8 + 4 + 8
    for key, entry in quoted.items():
        _, quantity, place, condition = key.split("/")
        place = place.removesuffix("-quoted")
        if key.startswith("wagner-2023/"):
            place = place.split("-")[0]
            condition = condition.removesuffix("-0.05")  # table 3 has one smoothing for each net
        elif quantity == "word-error" and condition == "smoothed":
            condition = "smoothed-other"
        assert entry["value"] == published(f"muller-2019/{quantity}/{place}/{condition}").value, key


def test_table_3_of_mueller_says_the_same_twice():
    for place in ("cifar100", "imagenet", "en-de"):
        scaled = published(f"muller-2019/ece/{place}/scaled").printed
        assert scaled.endswith(f"T = {published(f'muller-2019/temperature/{place}/hard').printed}")
        smoothed = published(f"muller-2019/ece/{place}/smoothed").printed
        assert smoothed.endswith(f"alpha = {published(f'muller-2019/alpha/{place}/smoothed').printed}")


def test_conditions_of_the_replication_are_those_of_the_setting():
    names = {
        "hard": "0",
        "scaled": "0",
        "smoothed": "0.1",
        **{f"smoothed-{a}": a for a in ("0.05", "0.15", "0.3")},
    }
    for table in ("table 2", "table 3"):
        for key, entry in of_table(f"Wagner et al. 2023, {table}").items():
            assert f", alpha {names[key.rsplit('/', 1)[1]]}" in entry.setting, key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("muller-2019/accuracy/cifar10/hard", 0.868),
        ("muller-2019/ece/imagenet/smoothed", 0.035),
        ("muller-2019/student-error/mnist/smoothed", 0.0091),
        ("muller-2019/clusters/cifar10", None),
        ("wagner-2023/ece/multi30k-transformer/smoothed-0.3", 0.110),
        ("lu-2023/bleu/iwslt14-de-en/labo", 35.2),
        ("lu-2023/examples/iwslt14-de-en/test", 6750),
    ],
)
def test_figures_looked_up_by_key(key, value):
    assert published(key).value == value


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("muller-2019/ece/cifar100/hrad", " (did you mean 'muller-2019/ece/cifar100/hard'?)"),
        ("mueller-2019/ece/cifar100/hard", ""),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(key, nearest):
    with pytest.raises(KeyError) as caught:
        published(key)
    assert caught.value.args == (f"no published figure '{key}'{nearest}",)
