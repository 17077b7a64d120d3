"""Questions in the store: they survive a restart, belong to whom they were asked of, and end once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from nova_mcp.core.connections import AgentConnections
from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.evidence.decision import decide
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Link, ServerId
from nova_mcp.memory.knowledge import store as knowledge_store
from nova_mcp.memory.knowledge.model import Action, Content, Fingerprint, Playbook, ScopeName, Signal
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.promotion.model import DAY_MS
from nova_mcp.memory.promotion.prompts import store
from nova_mcp.memory.promotion.prompts.prompter import OwnAnswer, Prompter, written_of
from nova_mcp.memory.promotion.prompts.rules import AlreadyResolved, Moment, Resolution
from promotion_kit import added, phenomenon

NOW = 100 * DAY_MS
ORIGIN = "https://shop.test"
BANNER = Moment(ORIGIN, "fp", ("consent",), selector="#no", layer="#banner", tool="nova.click_selector")
LINK = Link(ServerId("s"), 1, "c", b"", b"")


class Clock:
    def now_ms(self):
        return NOW

    def monotonic_ms(self):
        return 0.0


@pytest.fixture
def prompter(db):
    return Prompter(db, Clock())


def record(at_ms=NOW):
    return CallRecord("c", Caller("me", "a", ServerId("s")), "nova.click_selector", "act", at_ms, 0, CallOutcome("ok"))


def told(db, asking, at_ms=NOW):
    """One call on its way through its transaction."""
    if asking is not None:
        db.write_sync(lambda conn: asking.also(conn, record(at_ms), LINK))
    return asking


def answered(db, prompter, opportunity_id, verdict="unsafe", principal="me"):
    """What the answer came to, and how its call is recorded."""
    given = OwnAnswer(opportunity_id, verdict, None)
    kept, done = db.write_sync(decide, record(), lambda conn, _: prompter.answer(conn, principal, given, NOW))
    return done, kept.outcome


def test_a_question_outlives_the_server_that_asked_it(db, prompter):
    prompt = told(db, prompter.asking("me", ORIGIN, [BANNER])).prompt
    other = Prompter(db, Clock())
    said = [told(db, other.asking("me", ORIGIN, ())).prompt for _ in range(6)]
    assert [one and one.status for one in said] == [None, None, None, None, "warned", None]
    assert said[4].opportunity.opportunity_id == prompt.opportunity.opportunity_id


def test_another_connection_that_meets_it_is_asked_as_well_once(db, prompter):
    connections = AgentConnections(Clock())
    here, there = (connections.of(("me", "a"), session) for session in ("here", "there"))

    def met_on(connection, *moments):
        asking = told(db, prompter.asking("me", ORIGIN, moments, connection))
        asking.delivered()
        return asking.prompt and asking.prompt.status

    assert [met_on(here, BANNER), met_on(here, BANNER)] == ["prompted", None]
    assert [met_on(there), met_on(there, BANNER), met_on(there, BANNER)] == [None, "prompted", None]
    assert [met_on(there) for _ in range(5)] == [None, None, None, "warned", None]
    assert [met_on(connections.of(("me", "a"), "late"), BANNER) for _ in range(2)] == ["warned", None]


def test_nothing_is_read_where_nothing_is_open(db, prompter):
    assert told(db, prompter.asking("me", ORIGIN, ())).prompt is None
    assert prompter.asking("me", ORIGIN, ()) is None
    assert prompter.leaving("me", ORIGIN) is None
    asking = told(db, prompter.asking("me", ORIGIN, [BANNER]))
    assert prompter.asking("me", ORIGIN, ()) is not None
    answered(db, prompter, asking.prompt.opportunity.opportunity_id)
    told(db, prompter.asking("me", ORIGIN, ()))
    assert prompter.asking("me", ORIGIN, ()) is None


def test_principals_are_asked_each_for_themselves(db, prompter):
    mine = told(db, prompter.asking("me", ORIGIN, [BANNER])).prompt.opportunity
    assert db.read_sync(store.has_open, "me", "shop.test")
    assert not db.read_sync(store.has_open, "you", "shop.test")
    assert not db.read_sync(store.has_open, "me", "other.test")
    _, outcome = answered(db, prompter, mine.opportunity_id, principal="you")
    assert (outcome.kind, outcome.error_code, outcome.reason_code) == ("failed", -32004, "learn.opportunity_not_found")
    assert told(db, prompter.asking("you", ORIGIN, [BANNER])).prompt.opportunity.opportunity_id == mine.opportunity_id


def test_leaving_sums_up_what_was_asked_and_rests_it(db, prompter):
    prompt = told(db, prompter.asking("me", ORIGIN, [BANNER])).prompt
    first, second = (told(db, prompter.leaving("me", ORIGIN)).summary for _ in range(2))
    assert [one.opportunity_id for one in first.entries] == [prompt.opportunity.opportunity_id]
    assert second is None
    assert told(db, prompter.asking("me", ORIGIN, ())).prompt is None
    assert told(db, prompter.asking("me", ORIGIN, [BANNER])).prompt.status == "prompted"


def test_a_stored_entry_that_acts_there_answers_the_question_and_another_does_not(db, prompter):
    told(db, prompter.asking("me", ORIGIN, [BANNER]))
    content = Content("consent_cmp", Fingerprint((Signal("dom", "#other"),)), None)

    def by(one, principal="me", scope="shop.test"):
        written = written_of(ScopeName(scope), one)
        return db.write_sync(lambda conn: prompter.resolved_by(conn, principal, written, NOW))

    assert by(content) is None
    assert by(replace(content, type="modal", fingerprint=Fingerprint((Signal("dom", "#banner"),)))) is None
    pressing = replace(content, playbook=Playbook("reject_preferred", (Action("click", "#no", polarity="reject"),)))
    assert by(pressing, "you") is None
    assert by(pressing, scope="other.test") is None
    done = by(pressing)
    assert (done.match_source, done.opportunity.state) == ("selector", "resolved")
    assert by(pressing) is None
    assert normalize_selector("#no") == "#no"


def test_an_upsert_retires_candidates_that_raised_themselves(db, prompter):
    here = ScopeName("shop.test")
    names = {
        "auto": added(db, phenomenon("auto", level=0), Birth("auto")),
        "drawn": added(db, phenomenon("drawn", level=0), Birth("generated")),
        "grown": added(db, phenomenon("grown", level=1), Birth("auto")),
    }
    prompt = told(db, prompter.asking("me", ORIGIN, [BANNER])).prompt
    # Stored since by the agent that was asked.
    added(db, phenomenon("mine", level=1, type="consent_cmp"), Birth("manual"))
    done, outcome = answered(db, prompter, prompt.opportunity.opportunity_id, "upsert")
    assert (done.superseded, outcome.kind) == (1, "ok")
    retired = {name for name in names if db.read_sync(knowledge_store.find, here, name)[0].kept.deprecated}
    assert retired == {"auto"}


def test_of_racing_answers_one_closes_it(db, prompter):
    one = told(db, prompter.asking("me", ORIGIN, [BANNER])).prompt.opportunity
    barrier = Barrier(4)

    def answer(verdict):
        barrier.wait()
        return answered(db, Prompter(db, Clock()), one.opportunity_id, verdict)[0].result

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(answer, ("unsafe", "upsert", "not_applicable", "already_known")))
    assert sum(isinstance(result, Resolution) for result in results) == 1
    assert sum(isinstance(result, AlreadyResolved) for result in results) == 3


def test_calls_that_race_with_an_answer_do_not_open_it_again(db, prompter):
    one = told(db, prompter.asking("me", ORIGIN, [BANNER])).prompt.opportunity
    barrier = Barrier(4)

    def work(number):
        barrier.wait()
        other = Prompter(db, Clock())
        if number == 0:
            answered(db, other, one.opportunity_id)
        else:
            told(db, other.asking("me", ORIGIN, [BANNER]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    kept = db.read_sync(store.find, "me", one.opportunity_id, lock=False)
    assert kept.state == "dismissed"
