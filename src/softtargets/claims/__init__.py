"""Claims: what a paper printed, what we measured, and the verdict."""

from softtargets.claims.claim import (
    COMPUTED_RULE,
    RULE,
    Claim,
    ComputedClaim,
    Region,
    above,
    below,
    split_seeds,
    two_standard_errors,
    zone,
)
from softtargets.claims.judging import Judgement, judge
from softtargets.claims.published import Paper, Published, paper, papers, printed_by, published, sources
from softtargets.claims.rule import VERDICTS, Verdict, examples_variance
from softtargets.claims.sample import Sample

__all__ = [
    "COMPUTED_RULE",
    "RULE",
    "VERDICTS",
    "Claim",
    "ComputedClaim",
    "Judgement",
    "Paper",
    "Published",
    "Region",
    "Sample",
    "Verdict",
    "above",
    "below",
    "examples_variance",
    "judge",
    "paper",
    "papers",
    "printed_by",
    "published",
    "sources",
    "split_seeds",
    "two_standard_errors",
    "zone",
]
