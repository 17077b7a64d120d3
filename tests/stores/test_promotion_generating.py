"""Candidates out of what was seen, on both databases: written once, at the lowest level, and nothing invented."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import pytest
from sqlalchemy import select

from nova_mcp.evidence import store
from nova_mcp.evidence.model import CallOutcome, PageState, Signals, Touched
from nova_mcp.memory.journal import collector, service
from nova_mcp.memory.journal.candidate_store import candidate
from nova_mcp.memory.journal.finalize_store import gathered
from nova_mcp.memory.journal.model import WorkContext
from nova_mcp.memory.journal.outbox_store import Job
from nova_mcp.memory.journal.rules import promotable_ids
from nova_mcp.memory.journal.statistics.tables import learning_proposal
from nova_mcp.memory.knowledge import store as knowledge
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    DomainHint,
    Fingerprint,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.promotion import event_store
from nova_mcp.memory.promotion.collector import HOOKS
from nova_mcp.memory.promotion.drafts import track_store
from nova_mcp.memory.promotion.drafts.draft_store import Drafted, Looks
from nova_mcp.memory.promotion.drafts.generator import DraftPlan, planned, write_drafts
from nova_mcp.memory.promotion.drafts.jobs import take_up
from nova_mcp.memory.promotion.drafts.trace_store import route_pattern
from nova_mcp.memory.promotion.model import DAY_MS
from nova_mcp.memory.promotion.prompts import store as semantic_store
from nova_mcp.memory.promotion.prompts.rules import SemanticOpportunity
from nova_mcp.memory.promotion.tables import learning_track

T0 = 20_000 * DAY_MS
HOUR = 3_600_000
HOST = ScopeName("shop.test")
FAILED = {"outcome": CallOutcome("partial", action_dispatched=True)}
ELSEWHERE = PageState("tab_s1", "A", "https://shop.test/cart", "shop.test/cart", 2)
BANNER = Signals(
    label="success",
    layers=("consent",),
    layer="consent",
    polarity="reject",
    method="reject",
    seen_signals=(("vendor", "onetrust", None), ("dom", "#cmp", None)),
)


class Generation(NamedTuple):
    plan: DraftPlan
    done: Drafted


class Desk:
    """One server whose calls teach."""

    def __init__(self, db, build, server_id="s1"):
        self.db, self.build, self.server_id, self.made = db, build, server_id, 0
        db.write_sync(store.register_server, build.server(server_id))

    def call(self, at_ms=T0, selector="#go", **changes):
        self.made += 1
        changes.setdefault("touched", Touched(selector, "hash", "el_1"))
        record = self.build.page_call(self.server_id, f"{self.server_id}-{self.made}", at_ms, **changes)
        self.db.write_sync(self._record, record)
        return record

    def _record(self, conn, record):
        collector.derive(conn, record, store.append_call(conn, record), HOOKS)

    def dismiss(self, at_ms=T0, signals=BANNER, selector="#cmp .no"):
        return self.call(at_ms, selector, tool_name="nova.dismiss_blockers", signals=signals)

    def plan(self, now_ms=T0, limit=5):
        return self.db.read_sync(planned, HOST, "local", limit, now_ms)

    def generate(self, now_ms=T0, limit=5, **looks):
        plan = self.plan(now_ms, limit)
        checks = {key: PageCheck(now_ms, looks=looks) for key in plan.contents} if looks else {}
        return Generation(plan, self.db.write_sync(write_drafts, plan, Looks(now_ms, checks)))

    def entries(self):
        return self.db.read_sync(knowledge.entries, HOST)

    def events(self):
        return [
            (one.stable_id, one.reason_kind, one.from_level, one.to_level)
            for one in self.db.read_sync(event_store.events, HOST, 0, 50)
        ]


@pytest.fixture
def desk(db, build):
    return Desk(db, build)


def skipped(generation):
    return [one.reason for one in (*generation.plan.skipped, *generation.done.skipped)]


# -- generating


def test_a_banner_that_was_refused_again_and_again_becomes_a_candidate_once(desk):
    for number in range(3):
        desk.dismiss(T0 + number * HOUR)
    done = desk.generate()
    (written,) = done.done.written
    (entry,) = desk.entries()
    assert (entry.stable_id, entry.origin, entry.candidate_key) == (
        written.target_stable_id, "generated", written.candidate_key,
    )  # fmt: skip
    assert (entry.kept.level, entry.kept.content.type) == (0, "consent_cmp")
    assert entry.kept.content.fingerprint.signals == (Signal("dom", "#cmp"), Signal("vendor", "onetrust"))
    assert entry.kept.content.context.routes == ("desk",)
    assert entry.kept.content.playbook.actions == (Action("click", "#cmp .no", polarity="reject"),)
    assert set(entry.kept.unconfirmed) == {"#cmp", "#cmp .no"}
    assert desk.events() == [(entry.stable_id, "learn_generate", 0, 0)]
    again = desk.generate(T0 + HOUR)
    assert (again.done.written, skipped(again)) == ([], ["already_covered"])
    assert len(desk.entries()) == 1


def test_what_the_open_page_has_is_confirmed(desk):
    for number in range(3):
        desk.dismiss(T0 + number * HOUR)
    desk.generate(**{"#cmp": LiveLook(1), "#cmp .no": LiveLook(1, inside=True)})
    (entry,) = desk.entries()
    assert entry.kept.unconfirmed == ()


def test_what_the_open_page_contradicts_is_not_written(desk):
    for number in range(3):
        desk.dismiss(T0 + number * HOUR)
    done = desk.generate(**{"#cmp .no": LiveLook(4)})
    assert (done.done.written, skipped(done), desk.entries()) == ([], ["pks.selector_too_broad"], [])


@pytest.mark.parametrize(
    "changed",
    [{"method": "escape"}, {"method": None}, {"layers": ("age_gate", "consent")}],
)
def test_one_press_that_did_not_do_it_is_no_recipe(desk, changed):
    for number in range(3):
        desk.dismiss(T0 + number * HOUR, replace(BANNER, **changed))
    assert skipped(desk.generate()) == ["no_selector"]


def test_a_control_that_leads_to_one_place_becomes_a_link(desk):
    for number in range(2):
        desk.call(T0 + number * HOUR, "#cart", after=ELSEWHERE)
    (found,) = desk.generate().done.written
    assert (found.phenomenon_type, found.confidence) == ("nav_link", 0.75)


def test_entries_of_one_list_become_a_hint_though_each_was_used_once(desk):
    for number in range(3):
        signals = Signals(label="success", items=("ul.found > li", 8))
        desk.call(T0 + number * HOUR, f"#item-{number}x", signals=signals)
    (found,) = desk.generate().done.written
    assert (found.kind, found.hint_kind) == ("domain_hint", "result_item")
    (entry,) = desk.entries()
    assert isinstance(entry.kept, DomainHint)
    assert (entry.kept.selectors, entry.kept.level, entry.kept.mode) == (("ul.found > li",), 0, "item_root")
    assert skipped(desk.generate()) == ["already_covered"]


def active(**changes):
    content = Content(
        "modal",
        Fingerprint((Signal("dom", "#box"), Signal("text", "Subscribe"))),
        Playbook("dismiss", (Action("click", "#old", ("#older",)), Action("wait", wait_ms=50))),
    )
    return replace(Phenomenon(StableId("box"), content, 2, T0 - DAY_MS, T0 - DAY_MS), **changes)


def replaced(desk):
    for number in range(2):
        signals = Signals(label="success", failed_selector="#old", target_stable_id="box")
        desk.call(T0 + number * HOUR, "#new", tool_name="nova.phenomenon_apply", signals=signals)


def test_a_selector_that_worked_instead_patches_an_active_entry_beside_it(desk):
    desk.db.write_sync(knowledge.add, HOST, active(), Birth())
    replaced(desk)
    (found,) = desk.generate(T0 + 2 * HOUR).done.written
    assert (found.kind, found.target_stable_id) == ("patch", "box")
    current, pending = desk.db.read_sync(knowledge.find, HOST, "box")
    assert (current.kept.level, current.kept.content) == (2, active().content)
    assert (pending.slot, pending.kept.level) == ("pending", 1)
    assert pending.kept.content.playbook.actions == (Action("click", "#new", ("#older",)), Action("wait", wait_ms=50))
    assert pending.kept.content.fingerprint == active().content.fingerprint
    assert desk.events() == [("box", "learn_generate_patch", 1, 1)]
    assert skipped(desk.generate(T0 + 2 * HOUR)) == ["already_covered"]


def test_a_retired_entry_is_not_written_anew(desk):
    desk.db.write_sync(knowledge.add, HOST, active(deprecated_reason="old"), Birth())
    replaced(desk)
    assert skipped(desk.generate()) == ["entry_retired"]


def test_what_somebody_else_wrote_meanwhile_stays(desk):
    for number in range(3):
        desk.dismiss(T0 + number * HOUR)
    plan = desk.plan()
    first, second = (desk.db.write_sync(write_drafts, plan, Looks(T0)) for _ in range(2))
    assert len(first.written) == 1
    assert [one.reason for one in second.skipped] == ["already_covered"]
    assert len(desk.events()) == 1


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        ("shop.test/", "_root"),
        ("shop.test", "_root"),
        ("shop.test/desk/{id}", "desk"),
        ("shop.test/{id}/desk", "*"),
        ("shop.test/#!/feed/x", "feed"),
        ("", None),
        (None, None),
    ],
)
def test_routes_are_named_as_entries_name_them(key, pattern):
    assert route_pattern(key) == pattern


# -- what a release has put forward


def released(desk, status="verified"):
    """A candidate with what it takes to be promoted, and the job that its release leaves."""
    context = WorkContext("claim_1", "tab_s1", "A", "local", "agent", T0)
    for number in range(2):
        desk.call(T0 + number * HOUR, "#cart", after=ELSEWHERE, task_id="claim_1")
    claimed = service.Claimed("desk", "The cart opens here.", status, 0.9, "shop.test")
    kept = desk.db.write_sync(service.add_candidate, context, claimed, T0 + HOUR + 1_000)
    desk.call(T0 + 2 * HOUR, "#cart", after=ELSEWHERE, task_id="claim_1")
    ids = promotable_ids(desk.db.read_sync(gathered, "claim_1"))
    payload = {"taskId": "claim_1", "targetId": "tab_s1", "candidateIds": list(ids)}
    return kept.candidate, Job(
        "j", "finalize:claim_1", "finalize.memory.promote", "claim_1", "tab_s1", "local", "agent", payload, 1, "w"
    )


def states(desk):
    return desk.db.read_sync(lambda conn: conn.execute(select(learning_proposal.c.state)).scalars().all())


def test_a_released_candidate_becomes_a_draft_and_doing_the_job_twice_changes_nothing(desk):
    found, job = released(desk)
    assert job.payload["candidateIds"] == [found.candidate_id]
    for _ in range(2):
        desk.db.write_sync(take_up, job, T0 + 3 * HOUR)
    (entry,) = desk.entries()
    assert (entry.candidate_key, entry.stable_id, entry.kept.level) == (found.candidate_key, found.stable_id, 0)
    assert (entry.kept.content.type, states(desk), len(desk.events())) == ("nav_link", ["taken"], 1)


def test_a_disproven_candidate_becomes_nothing(desk):
    found, job = released(desk)
    disproven = candidate.update().where(candidate.c.candidate_id == found.candidate_id).values(status="disproven")
    desk.db.write_sync(lambda conn: conn.execute(disproven))
    desk.db.write_sync(take_up, job, T0 + 3 * HOUR)
    assert desk.entries() == []


def test_an_open_proposal_is_taken_up_by_the_next_who_generates_there(desk):
    found, job = released(desk)
    row = {
        "job_key": job.job_key, "task_id": "claim_1", "target_id": "tab_s1", "principal": "local", "agent_id": "agent",
        "candidate_ids": json.dumps([found.candidate_id]), "state": "open", "proposed_at_ms": T0,
    }  # fmt: skip
    desk.db.write_sync(lambda conn: conn.execute(learning_proposal.insert(), row))
    done = desk.generate()
    assert [one.candidate_key for one in done.done.written] == [found.candidate_key]
    assert skipped(done) == ["already_covered"]
    assert states(desk) == ["taken"]


# -- controls that Nova follows by itself


def uses(desk, count=3, selector="#buy", **changes):
    made = []
    for number in range(count):
        seen = {"came_from": f"shop.test/{number % 2}", "page_state": f"p{number % 2}", "described": True}
        signals = Signals(label="success", **seen, **changes)
        made.append(desk.call(T0 + number * HOUR, selector, signals=signals))
    return made


def test_a_control_proven_under_different_circumstances_raises_a_candidate_with_that_very_call(desk):
    *before, last = uses(desk)
    assert [one.signals.learned for one in before] == [[], []]
    (told,) = last.signals.learned
    (entry,) = desk.entries()
    assert (told.scope, told.stable_id, told.candidate_key) == (HOST, entry.stable_id, entry.candidate_key)
    assert told.trigger == "3 verified uses, 2 ways in, 2 page states"
    assert (entry.origin, entry.kept.level, entry.kept.unconfirmed) == ("auto", 0, ())
    assert entry.kept.content.playbook.actions == (Action("click", "#buy"),)
    more = desk.call(T0 + 5 * HOUR, "#buy", signals=Signals(label="success", came_from="c", page_state="p"))
    assert (more.signals.learned, len(desk.entries())) == ([], 1)
    assert desk.events() == [(entry.stable_id, "learn_generate", 0, 0)]


@pytest.mark.parametrize(
    ("selector", "changes"),
    [(".css-1x2y3z", {}), ("li:nth-child(2)", {}), ("#buy", {"layer": "modal"})],
)
def test_what_would_not_last_or_belongs_to_a_layer_is_not_followed(desk, selector, changes):
    uses(desk, 4, selector, **changes)
    assert desk.entries() == []


def test_a_failure_ends_it(desk):
    desk.call(T0 - HOUR, "#buy", **FAILED, signals=Signals(label="failure"))
    uses(desk, 4)
    assert desk.entries() == []


def test_repeats_within_half_a_minute_are_one_use(desk):
    for number in range(6):
        signals = Signals(label="success", came_from=f"shop.test/{number % 2}", page_state=f"p{number % 2}")
        desk.call(T0 + number * 1_000, "#buy", signals=signals)
    assert desk.entries() == []


def test_while_a_richer_question_is_open_nothing_is_raised_and_then_it_is(desk):
    asked = SemanticOpportunity("sem:consent_cmp:https://shop.test:f", "consent_cmp", "https://shop.test", "f", 0.8, T0)
    desk.db.write_sync(semantic_store.save, "local", asked, T0)
    uses(desk)
    assert desk.entries() == []
    desk.db.write_sync(semantic_store.save, "local", replace(asked, state="dismissed"), T0)
    last = desk.call(T0 + 5 * HOUR, "#buy", signals=Signals(label="success", described=True))
    assert len(last.signals.learned) == 1


def test_servers_that_prove_it_at_the_same_time_raise_one_candidate(store_url, open_db, build):
    desks = [Desk(open_db(store_url), build, f"s{number}") for number in range(3)]
    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(lambda desk: uses(desk, 4), desks))
    assert len(desks[0].entries()) == 1
    assert sum(len(one.signals.learned) for calls in made for one in calls) == 1


def test_controls_nobody_uses_any_more_are_forgotten(desk):
    uses(desk, 1)
    desk.call(T0 + 60 * DAY_MS, "#other", signals=Signals(label="success"))
    later = T0 + (track_store.KEPT_DAYS + 1) * DAY_MS
    assert desk.db.write_sync(track_store.forget, later) == 1
    rows = desk.db.read_sync(lambda conn: conn.execute(select(learning_track.c.selector)).scalars().all())
    assert rows == ["#other"]
