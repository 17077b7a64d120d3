"""What the story came to, counted afterwards: in the store that Nova wrote, and in the log that the site kept."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from nova_mcp.core.keywords import some
from nova_mcp.demo.site import PracticeSite
from nova_mcp.demo.site_answers import PASSWORD
from nova_mcp.demo.stage import Chapter
from nova_mcp.demo.wiki_chapters import BY_HAND, WITH_HELP
from nova_mcp.evidence.audit import Finding, verify
from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.evidence.store import heads
from nova_mcp.memory.promotion.event_store import events as decisions
from nova_mcp.memory.promotion.model import LearningEvent
from nova_mcp.memory.promotion.replay import replay_levels
from nova_mcp.storage.engine import Database

STORE = "nova.db"
_MANY = 100_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the summary: what, how much, and where that was counted."""

    what: str
    value: str
    counted_in: str


@dataclass(frozen=True, slots=True)
class Tally:
    """The figures of a story. Everything here is counted; nothing is passed on by a chapter."""

    calls: int
    refused: int
    by_hand: int
    with_help: int
    lies_caught: int
    wrong_clicks: int
    duplicates: int
    too_early: int
    promoted: int
    demoted: int
    orders: int
    messages: int
    consents: int
    refusals: int
    archived: int
    failed: int
    requests: int

    @property
    def saved(self) -> float:
        return 1 - self.with_help / self.by_hand if self.by_hand else 0.0


def counted(folder: Path, site: PracticeSite) -> Tally:
    with Database.open(f"sqlite:///{folder / STORE}") as database:
        records, steps = database.read_sync(_records), database.read_sync(_steps)
    reasons = [one.outcome.reason_code for one in records]
    return Tally(
        calls=len(records),
        refused=sum(one.outcome.kind in ("blocked_preflight", "invalid") for one in records),
        by_hand=sum(one.caller.agent_id == BY_HAND for one in records),
        with_help=sum(one.caller.agent_id == WITH_HELP for one in records),
        lies_caught=sum(one.outcome.verification == "failed" for one in records),
        wrong_clicks=reasons.count("action.obstructed") + reasons.count("pks.element_changed"),
        duplicates=reasons.count("guarded_commit.duplicate_suspected"),
        too_early=reasons.count("url_units_remaining"),
        promoted=sum(step.to_level > step.from_level for step in steps),
        demoted=sum(step.to_level < step.from_level for step in steps),
        orders=site.received("shop", "POST", "/api/order"),
        messages=site.received("chat", "POST", "/api/messages", 201),
        consents=site.received("shop", "POST", "/api/consent/accepted"),
        refusals=site.received("shop", "POST", "/api/consent/rejected"),
        archived=site.received("wiki", "POST", "/api/archive"),
        failed=site.failed,
        requests=site.requests,
    )


def _records(conn: Connection) -> list[CallRecord]:
    """Every finished call; intents and what recovery wrote are no calls of an agent."""
    found = events(conn, EventFilter(limit=_MANY)).calls
    return [one.record for one in found if one.record is not None and one.record.kind == "call"]


def _steps(conn: Connection) -> list[LearningEvent]:
    return [one for one in decisions(conn, None, 0, _MANY) if one.rejection is None]


def figures(tally: Tally) -> list[Figure]:
    """The summary, in the words of somebody who wants to know what it was good for."""
    saved = f"{tally.by_hand} → {tally.with_help} ({tally.saved:.0%} saved)"
    once = f"{tally.duplicates}; {some(tally.orders, 'order')} and {some(tally.messages, 'message')} arrived"
    return [
        Figure("calls for the same page, by hand and with what was learned", saved, "ledger, by agent"),
        Figure("false successes caught", f"{tally.lies_caught} of {tally.failed}", "ledger; site's log"),
        Figure("wrong clicks not made", str(tally.wrong_clicks), "ledger"),
        Figure("double submits refused", once, "ledger; site's log"),
        Figure("completions refused for want of proof", str(tally.too_early), "ledger"),
        Figure("entries promoted / demoted", f"{tally.promoted} / {tally.demoted}", "promotion log"),
        Figure("consent refused / given", f"{tally.refusals} / {tally.consents}", "site's log"),
        Figure("calls recorded, of which stopped before they ran", f"{tally.calls}, {tally.refused}", "ledger"),
        Figure("requests that reached the site", str(tally.requests), "site's log"),
    ]


def check_figures(tally: Tally) -> Chapter:
    """What Nova says of itself, against what the site has counted."""
    agree = {
        "every submit that the site could not take was told as failed": 0 < tally.failed == tally.lies_caught,
        "one order and one message arrived": (tally.orders, tally.messages) == (1, 1),
        "nothing was archived": tally.archived == 0,
        "nobody consented": tally.consents == 0 < tally.refusals,
    }
    wrong = [what for what, holds in agree.items() if not holds]
    told = f"not so: {'; '.join(wrong)}" if wrong else "; ".join(agree)
    return Chapter("Nova's ledger beside the site's own log", told, f"{some(tally.requests, 'request')}", not wrong)


# -- the evidence itself


def check_evidence(folder: Path, site: PracticeSite) -> list[Chapter]:
    path = folder / STORE
    agreeing = check_figures(counted(folder, site))
    return [agreeing, *check_ledger(path), check_levels(path), check_secret(folder)]


def _audit(path: Path) -> tuple[int, list[Finding]]:
    with Database.open(f"sqlite:///{path}") as db:
        entries = sum(row.head_seq for row in db.read_sync(heads))
        return entries, db.read_sync(lambda conn: list(verify(conn)))


def _copied(path: Path, name: str) -> Path:
    """A copy that is whole although the server still writes."""
    copy = path.with_name(name)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def check_ledger(path: Path) -> list[Chapter]:
    """Every call is in the chain; a copy with one changed word is caught."""
    entries, findings = _audit(path)
    whole = entries > 0 and not findings
    copy = _copied(path, "tampered.db")
    with closing(sqlite3.connect(copy)) as conn, conn:
        conn.execute(
            "UPDATE ledger_body SET body = CAST(replace(CAST(body AS TEXT), 'click', 'hover') AS BLOB) "
            "WHERE tool_name = 'nova.click_selector'"
        )
    _, broken = _audit(copy)
    copy.unlink()
    told = f"entry {broken[0].server_seq}: {broken[0].detail}" if broken else "not noticed"
    return [
        Chapter("The ledger is whole", f"{some(entries, 'entry', 'entries')}, every link holds", "", whole),
        Chapter("One word changed in a copy of it", told, "", bool(broken)),
    ]


def check_levels(path: Path) -> Chapter:
    with Database.open(f"sqlite:///{path}") as db:
        done = db.read_sync(replay_levels)
    told = f"{some(done.steps, 'recorded step')} lead to exactly the levels of {some(done.entries, 'entry', 'entries')}"
    differing = f"{some(len(done.differences), 'difference')}"
    right = done.entries > 0 and not done.differences
    return Chapter("Levels, replayed from the evidence", told if right else differing, "", right)


def check_secret(folder: Path) -> Chapter:
    """The password is in the file it was given in, and nowhere else that Nova has written."""
    files = [one for one in folder.rglob("*") if one.is_file() and one.name != "secrets.toml"]
    found = [one.name for one in files if PASSWORD.encode() in one.read_bytes()]
    told = f"in {', '.join(found)}" if found else f"in none of {some(len(files), 'file')} that Nova has written"
    return Chapter("The password of the chat", told, "", bool(files) and not found)
