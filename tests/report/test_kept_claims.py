"""Claims read again from beside a page are those that were written there."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from softtargets.claims import Claim, ComputedClaim, Region, Sample, above, judge, zone
from softtargets.report import kept_judgement, ours_long, strip_row
from softtargets.report.kept_claims import claim_data

COMMITTED = sorted((Path(__file__).parents[2] / "results").glob("*/results.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_nothing_of_the_committed_claims_is_lost(path):
    for data in json.loads(path.read_text(encoding="utf-8"))["claims"]:
        assert claim_data(kept_judgement(data)) == {"digits": 3} | data


CLAIMS = [
    Claim(
        "a", (), "q", *above(0, Sample.of([0.9, 1.0, 1.1, 5.0])), printed=2.0, margin=0.5, unit="%", digits=1
    ),
    Claim("b", (), "q", Sample.of([1.0, 1.2, 1.1], examples=0.04), Region(1.5, 2.5), printed=2.0, margin=0.5),
    Claim("c", (), "q", Sample.of([1.0]), Region(high=2), zone=zone(0.1), measured="1 of them", remark="r"),
    Claim("d", (), "q", Sample(()), Region(low=2)),
    Claim("e", (), "q", Sample.of([math.nan, 1.0, 2.0]), Region(low=2)),
    Claim.every("f", (), "q", {"T = 1": Sample.of([1, 2, 3]), "T = 2": Sample.of([0, 1, 2])}, Region(low=0)),
    ComputedClaim("g", (), "q", Sample.of([0.1, 0.2]), Region(low=0)),
]


def test_they_look_and_are_written_as_before():
    judged = judge(CLAIMS)
    for one in judged:
        again = kept_judgement(json.loads(json.dumps(claim_data(one))))
        assert ours_long(again) == ours_long(one)
        assert strip_row(again) == strip_row(one)
        assert (again.verdict, again.value, again.reason) == (one.verdict, one.value, one.reason)
        assert again.claim.is_number == one.claim.is_number
        assert again.claim.others == one.claim.others or one.claim.others.examples
        assert again.claim.digits == one.claim.digits
        assert (again.claim.sample.examples is None) == (one.claim.sample.examples is None)


def test_digits_that_were_not_kept_are_those_of_the_study():
    (judged,) = judge(CLAIMS[:1])
    data = claim_data(judged)
    del data["digits"]
    assert kept_judgement(data, 1).claim.digits == 1
