"""A campaign: a ranked list of studies that is trained by itself, whenever a GPU is there for a while."""

from softtargets.campaign.beside import has_room
from softtargets.campaign.cells import STATUSES, Cell, State, cells_of
from softtargets.campaign.costing import CampaignCost, Simulated, campaign_cost, from_nothing, simulate
from softtargets.campaign.file import DEFAULT, Campaign, Entry, PlannedPage, load_campaign
from softtargets.campaign.lessons import write_lessons
from softtargets.campaign.order import Group, Wanted, next_group, schedule
from softtargets.campaign.pages import choose_pages, write_pages
from softtargets.campaign.planning import Outlook, outlook, outlook_elsewhere
from softtargets.campaign.session import RESERVE, Session
from softtargets.campaign.speeds import SPEEDS, Speed, Speeds
from softtargets.campaign.status import EntryStatus, coming, entry_statuses, totals

__all__ = [
    "DEFAULT",
    "RESERVE",
    "SPEEDS",
    "STATUSES",
    "Campaign",
    "CampaignCost",
    "Cell",
    "Entry",
    "EntryStatus",
    "Group",
    "Outlook",
    "PlannedPage",
    "Session",
    "Simulated",
    "Speed",
    "Speeds",
    "State",
    "Wanted",
    "campaign_cost",
    "cells_of",
    "choose_pages",
    "coming",
    "entry_statuses",
    "from_nothing",
    "has_room",
    "load_campaign",
    "next_group",
    "outlook",
    "outlook_elsewhere",
    "schedule",
    "simulate",
    "totals",
    "write_lessons",
    "write_pages",
]
