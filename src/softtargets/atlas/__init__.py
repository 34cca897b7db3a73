"""The atlas: every claim of every study on one page, and what of the papers no study covers."""

from softtargets.atlas.coverage import Exhibit, Loose
from softtargets.atlas.entries import OURS, REPLICATION, SMALL, Atlas, Entry, gather
from softtargets.atlas.origins import Origin
from softtargets.atlas.provenance import untraced
from softtargets.atlas.words import atlas_data, counted, headline, short_name, tally, told
from softtargets.atlas.writing import stale, write_atlas

__all__ = [
    "OURS",
    "REPLICATION",
    "SMALL",
    "Atlas",
    "Entry",
    "Exhibit",
    "Loose",
    "Origin",
    "atlas_data",
    "counted",
    "gather",
    "headline",
    "short_name",
    "stale",
    "tally",
    "told",
    "untraced",
    "write_atlas",
]
