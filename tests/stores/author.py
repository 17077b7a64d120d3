"""A second process that writes knowledge as a server does, and stops where it is told to; made to be killed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from nova_mcp.core.clock import Ports, SystemClock, SystemIds
from nova_mcp.evidence import store as ledger
from nova_mcp.evidence.model import CallOutcome, Checked, Signals, Touched
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.memory.journal.collector import collecting
from nova_mcp.memory.journal.statistics.counters import Counters
from nova_mcp.memory.knowledge.model import Action, Context, Fingerprint, Playbook, Signal, StableId
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.entry_write import entry_write
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Patch, Upsert
from nova_mcp.memory.knowledge.writes.store import Writer
from nova_mcp.memory.promotion import promoter, steps_store
from nova_mcp.memory.promotion.collector import HOOKS
from nova_mcp.memory.promotion.drafts.draft_store import Looks
from nova_mcp.memory.promotion.drafts.generator import planned, write_drafts
from nova_mcp.memory.promotion.promoter import Wish
from nova_mcp.memory.promotion.sightings import EntrySighting, Sightings
from nova_mcp.storage.engine import Database
from promotion_kit import DAY_MS, HERE, NOW, WORKED, Site, added, phenomenon

WRITER = Writer(steps_store)
LATER = NOW + 3 * DAY_MS
CHECK = PageCheck(LATER, {one: LiveLook(1, True) for one in ("#layer", "#go", "#fallback", "#new", "#shut")})
BANNER = Signals(
    label="success",
    layers=("consent",),
    layer="consent",
    polarity="reject",
    method="reject",
    seen_signals=(("dom", "#cmp", None),),
)


class Stopping:
    """Says that the program has come to a point and waits there for a word, or its end."""

    def __init__(self, *points):
        self.points = points

    def hit(self, point):
        if point in self.points:
            print(point, flush=True)
            sys.stdin.readline()


class Build:
    """A server as the store knows it."""

    @staticmethod
    def server(server_id):
        return ledger.ServerInfo(server_id, 1_000, 1, 1, "test", "0")


def prepared(db):
    """A shadow that has earned its level, and a banner that was refused again and again."""
    site = Site(db, Build, "elder")
    added(db, phenomenon())
    for day in range(3):
        at = NOW + day * DAY_MS
        site.call(at, WORKED)
        site.call(at + 60_000, BANNER, "#cmp .no", tool_name="nova.dismiss_blockers")


# -- what a server does for one call: a record, what is decided before it and what is written beside it


def _told(site, tool, effect="write", signals=None):
    return site.record(
        LATER,
        signals or Signals(),
        None,
        tool_name=tool,
        effect=effect,
        outcome=CallOutcome("ok"),
        touched=Touched(),
    )


def upsert(site):
    wish = Upsert(
        StableId("shut"),
        "modal",
        Fingerprint((Signal("dom", "#layer"),)),
        Playbook("dismiss", (Action("click", "#shut"),)),
    )
    write = entry_write(lambda conn: WRITER.upsert(conn, HERE, wish, CHECK))
    return _told(site, "nova.pks_upsert"), (), write, lambda done: done.kind


def patch(site):
    changes = Patch(playbook=Playbook("dismiss", (Action("click", "#new"),)), context=Context(routes=("desk",)))
    write = entry_write(lambda conn: WRITER.patch(conn, HERE, "banner", changes, CHECK))
    return _told(site, "nova.pks_patch"), (), write, lambda done: done.kind


def promote(site):
    decisions = []

    def also(conn, record, link):
        decisions.extend(promoter.promote(conn, Wish(HERE), LATER))

    applied = lambda _: ",".join(f"{one.stable_id}:{one.applied}" for one in decisions)  # noqa: E731
    return _told(site, "nova.learn_promote"), (also,), None, applied


def generate(site):
    plan = site.db.read_sync(planned, HERE, "local", 5, LATER)
    write = entry_write(lambda conn: write_drafts(conn, plan, Looks(LATER)))
    return _told(site, "nova.learn_generate"), (), write, lambda done: str(len(done.written))


def revalidate(site):
    entry = site.entry()
    signals = Signals(checks=(Checked("banner", "hard_drift", "#go"),))
    sightings = Sightings(HERE, (EntrySighting(entry, 0.5),))
    also = (sightings.also,)
    return _told(site, "nova.revalidate", "read", signals), also, None, lambda _: ",".join(sorted(sightings.recorded))


OPERATIONS = {"upsert": upsert, "patch": patch, "promote": promote, "generate": generate, "revalidate": revalidate}


def perform(db, name, server, *points):
    """One call in the way of a server of that name; what came of it."""
    clock = SystemClock()
    site = Site(db, Build, server)
    ports = Ports(clock, SystemIds(clock), Stopping(*points))
    site.recorder = Recorder(db, ports, site.recorder.server_id, also=(collecting(HOOKS, Counters().count),))
    made, also, write, outcome = OPERATIONS[name](site)
    ports.faults.hit("ready")
    done = db.write_sync(site.write, made, also, write)
    # As the recorder does it outside of the transaction.
    ports.faults.hit("ledger.after_commit")
    return outcome(done)


if __name__ == "__main__":
    with Database.open(sys.argv[1]) as opened:
        perform(opened, *sys.argv[2:])
