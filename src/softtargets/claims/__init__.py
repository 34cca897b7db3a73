"""Claims: what a paper printed, what we measured, and the verdict."""

from softtargets.claims.claim import COMPUTED_RULE, RULE, Claim, Region, Verdict
from softtargets.claims.published import Published, published
from softtargets.claims.sample import Sample

__all__ = ["COMPUTED_RULE", "RULE", "Claim", "Published", "Region", "Sample", "Verdict", "published"]
