"""Claims: what a paper printed, what we measured, and the verdict."""

from softtargets.claims.claim import COMPUTED_RULE, RULE, Claim, ComputedClaim, Region, Verdict, above, below
from softtargets.claims.published import Published, published, sources
from softtargets.claims.sample import Sample

__all__ = [
    "COMPUTED_RULE",
    "RULE",
    "Claim",
    "ComputedClaim",
    "Published",
    "Region",
    "Sample",
    "Verdict",
    "above",
    "below",
    "published",
    "sources",
]
