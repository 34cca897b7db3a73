from __future__ import annotations

import re
from importlib.resources import files

import pytest
import yaml

from softtargets.claims import published

TEXT = files("softtargets.claims").joinpath("published.yaml").read_text(encoding="utf-8")


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
ENTRIES = yaml.load(TEXT, Loader=Strict)


def test_the_strict_loader_would_notice_a_repeated_key():
    with pytest.raises(AssertionError, match="given twice"):
        yaml.load("{a: 1, b: 2, a: 3}", Loader=Strict)


def test_no_line_of_the_file_is_lost():
    assert len(ENTRIES) == sum(1 for line in TEXT.splitlines() if line and line[0] not in " #")


@pytest.mark.parametrize("key", ENTRIES)
def test_every_figure_has_its_words_its_setting_and_its_source(key):
    entry = published(key)
    assert {"printed": entry.printed, "setting": entry.setting, "source": entry.source} == {
        name: ENTRIES[key][name] for name in ("printed", "setting", "source")
    }
    assert all(
        isinstance(text, str) and text.strip() for text in (entry.printed, entry.setting, entry.source)
    )
    assert entry.value == ENTRIES[key].get("value")


@pytest.mark.parametrize("key", [key for key in ENTRIES if "value" in ENTRIES[key]])
def test_the_value_is_the_first_number_that_was_printed(key):
    entry = published(key)
    number = float(re.match(r"[\d.]+", entry.printed).group())
    percent = "%" in entry.printed
    assert isinstance(entry.value, float)
    assert entry.value == pytest.approx(number / 100 if percent else number, rel=1e-12)


@pytest.mark.parametrize("key", ENTRIES)
def test_a_key_starts_with_author_and_year_and_the_source_agrees(key):
    year = re.match(r"[a-z]+-(\d{4})/", key).group(1)
    assert f" {year}, " in published(key).source


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("muller-2019/accuracy/cifar10/hard", 0.868),
        ("muller-2019/ece/imagenet/smoothed", 0.035),
        ("muller-2019/student-error/mnist/smoothed", 0.0091),
        ("muller-2019/clusters/cifar10", None),
    ],
)
def test_figures_looked_up_by_key(key, value):
    assert published(key).value == value


def test_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(KeyError) as caught:
        published("muller-2019/ece/cifar100/hrad")
    assert caught.value.args == (
        "no published figure 'muller-2019/ece/cifar100/hrad' (did you mean 'muller-2019/ece/cifar100/hard'?)",
    )
