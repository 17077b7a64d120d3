"""Every benchmark in its order: what it asks, how long it may take in a report, and the words it is called with."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Planned:
    """`limit_s` ends a run that hangs; it leaves room for a busy machine. What is usual adds up to about 40 minutes."""

    name: str
    about: str
    limit_s: int
    arguments: tuple[str, ...] = ()


PLAN: Final = (
    Planned("pipeline", "What the pipeline costs: per call, at start, in tokens, on the write path, in memory.", 240),
    Planned("kill", "The server killed at random points of many calls: nothing answered may be missing.", 600),
    Planned(
        "truth",
        "Does Nova say what is true? Guarded actions on a site that fails at random and keeps the books.",
        420,
        ("--trials=300",),
    ),
    Planned(
        "duplicates",
        "Never twice by accident, never silently less: received against asked for.",
        540,
        ("--races=10000",),
    ),
    Planned("verdicts", "How soon a verdict stands after its postcondition turned true, and what acting costs.", 240),
    Planned("miniwob", "Claims against the reward of task pages of other people (MiniWoB++).", 300),
    Planned("django_admin", "What Nova says about the admin of Django against the rows in its database.", 300),
    Planned("consent", "Consent banners of other people: found, gone, choice stored as asked.", 420),
    Planned("browser", "Beside other browser servers: the same Chromium, the same pages, in turn.", 600, ("--quick",)),
    Planned("names", "Accessible names, roles and states beside those of Chromium itself.", 300),
    Planned("labels", "Recall and precision of each claim about a page on small labelled pages.", 240),
    Planned("facts", "Facts in a long stream of updates, noise and distractors, and lookups as the store grows.", 900),
    Planned("journal", "What the journal costs as history grows, on SQLite and PostgreSQL.", 540),
    Planned(
        "repair", "Is a lost element found again, and how often wrongly? On real pages from version to version.", 420
    ),
    Planned("promotion", "Does only what is right become guidance? A seeded simulation.", 300),
    Planned("knowledge", "What knowledge costs as it grows, on SQLite and PostgreSQL.", 360),
    Planned("repeat_visits", "Calls and tokens saved on a repeat visit, and what a redesign does.", 540),
    Planned("poisoning", "Who can put something wrong into what is known, and how many it takes.", 420),
    Planned("dashboard", "What pages of the dashboard cost as the ledger grows, on SQLite and PostgreSQL.", 360),
    Planned("tasks", "Is a run completed exactly when its work is proven, and does that stay fast?", 720),
)
BY_NAME: Final = {one.name: one for one in PLAN}
NAMES: Final = tuple(BY_NAME)
# Asked for alone: parts of others, and what no aim stands for.
PARTS: Final = ("tasks_match", "tasks_growth", "disk")
