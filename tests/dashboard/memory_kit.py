"""A store with a past: entries that rose and fell, facts, goals, tasks and notes, written as the server writes them."""

from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

from dashboard_kit import HOSTILE, NOW

import run_kit
from nova_mcp.evidence.model import Checked, ServerId
from nova_mcp.evidence.recorder import describe_server
from nova_mcp.memory.facts import store as fact_store
from nova_mcp.memory.facts.model import Observation, Page, Scope
from nova_mcp.memory.facts.rules import canonical
from nova_mcp.memory.journal.model import WorkContext
from nova_mcp.memory.journal.service import Claimed, add_candidate
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    Context,
    ElementPrint,
    Fingerprint,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
    VerifyStep,
)
from nova_mcp.memory.knowledge.store import Birth, Shelved
from nova_mcp.memory.notes import domain_store, memory_store, operator_store
from nova_mcp.memory.notes.domain_model import Wish as NoteWish
from nova_mcp.memory.notes.memory_store import NewMemory
from nova_mcp.memory.notes.operator_store import Draft
from nova_mcp.memory.promotion import promoter, steps_store
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS
from nova_mcp.memory.promotion.promoter import Wish
from nova_mcp.memory.promotion.prompts import store as semantic_store
from nova_mcp.memory.promotion.prompts.rules import Moment, detected
from nova_mcp.memory.tasks.model import Check, CompletionCondition, EvidencePolicy, Guidance, TaskContent
from nova_mcp.memory.tasks.profiles import store as profile_store
from nova_mcp.memory.tasks.profiles.rules import Profile
from nova_mcp.memory.tasks.tables import task_unit
from nova_mcp.storage.engine import Database
from nova_mcp.verification.goals import store as goal_store
from nova_mcp.verification.goals.model import NewGoal, Note, PlannedStep
from nova_mcp.verification.goals.rules import Ownership
from promotion_kit import FAILED, HERE, Site, added, hint

OTHER = ScopeName("wiki.test")
# An address that fits into no column, and has no place where it would break by itself.
LONG = f"https://shop.test/{'catalogue_of_everything_' * 6}"
# Whoever names an entry may use every sign that is printed, and no blanks.
EVIL = f"x{HOSTILE}".replace(" ", "_")
_numbers = count(1)


def new_id() -> str:
    return f"{next(_numbers):032x}"


def servers() -> Any:
    return SimpleNamespace(server=lambda name: describe_server(ServerId(name), NOW - 40 * DAY_MS, "test"))


def entry(name: str, selector: str, level: Any = 0, **changes: Any) -> Phenomenon:
    at_ms = changes.pop("at_ms", NOW - 20 * DAY_MS)
    label = changes.pop("label", "Reject all")
    content = Content(
        changes.pop("type", "modal"),
        Fingerprint((Signal("dom", "#layer"), Signal("text", changes.pop("sign", "Newsletter"), "en")), 0.6),
        Playbook(
            "dismiss",
            (Action("click", selector, ("button.close",), ElementPrint("button", text=label)),),
            (VerifyStep("absent", "#layer"),),
        ),
        Context(routes=changes.pop("routes", ())),
    )
    made = Phenomenon(StableId(name), content, level, at_ms, at_ms)
    return replace(made, **changes)


# -- knowledge


def grown(db: Database) -> Site:
    """One entry with a whole life: candidate, shadow, active, drift, demoted, repaired, active again."""
    site = Site(db, servers(), "past")
    put = added(db, entry("newsletter", "#no"), Birth("auto", "ck_newsletter"))
    day = NOW - 19 * DAY_MS
    for number in range(3):
        site.call(day + number * DAY_MS, selector="#no", agent="ada")
    promote(db, HERE, day + 3 * DAY_MS)
    for number in range(4):
        site.call(day + (3 * DAY_MS) + (number + 1) * 11 * HOUR_MS, selector="#no", agent="bob")
    promote(db, HERE, day + 6 * DAY_MS)
    for number in range(3):
        site.call(day + 7 * DAY_MS + number * 20 * HOUR_MS, selector="#no")
    site.look(day + 10 * DAY_MS, Checked("newsletter", "seen"))
    site.look(day + 11 * DAY_MS, Checked("newsletter", "hard_drift"), tool="nova.revalidate")
    site.call(day + 11 * DAY_MS + HOUR_MS, FAILED, "#no")
    repaired(db, put, "#decline", day + 12 * DAY_MS)
    for number in range(4):
        site.call(day + 13 * DAY_MS + number * 13 * HOUR_MS, selector="#decline")
    promote(db, HERE, day + 18 * DAY_MS)
    return site


def repaired(db: Database, put: Shelved, selector: str, at_ms: int) -> None:
    """The content is another one, as a patch leaves it."""

    def write(conn: Any) -> None:
        (before,) = store.find(conn, put.scope, put.stable_id)
        assert isinstance(before.kept, Phenomenon)
        made = entry(put.stable_id, selector).content
        kept = replace(before.kept, content=made, revision=before.kept.revision + 1)
        steps_store.revised(conn, before, replace(before, kept=kept), at_ms)

    db.write_sync(write)


def promote(db: Database, scope: ScopeName, at_ms: int) -> Any:
    return db.write_sync(promoter.promote, Wish(scope), at_ms)


def knowledge(db: Database) -> Site:
    site = grown(db)
    added(db, entry("cart-drawer", "#cart", 1, type="popover_open", at_ms=NOW - 3 * DAY_MS))
    for number in range(2):
        site.call(NOW - 2 * DAY_MS + number * HOUR_MS, selector="#cart")
    added(db, entry("chat-bubble", "#chat", 0, at_ms=NOW - DAY_MS), Birth("auto", "ck_chat"))
    added(db, hint("ads", created_at_ms=NOW - 5 * DAY_MS, updated_at_ms=NOW - 5 * DAY_MS))
    added(db, replace(entry("old-banner", "#old"), deprecated_reason="the layer is gone"))
    pending = replace(entry("newsletter", "#refuse", 1, at_ms=NOW - HOUR_MS), revision=3)
    added(db, pending, Birth("manual", slot="pending"))
    hostile = entry(EVIL, "#evil", 1, label=HOSTILE, sign=HOSTILE, routes=(f"/{HOSTILE}",))
    added(db, hostile, scope=OTHER)
    return site


def question(db: Database, principal: str = "local", origin: str = "https://shop.test") -> str:
    moment = Moment(origin, "fp", ("consent",), selector="#no", layer=f"#cmp{HOSTILE}", tool="nova.click_selector")
    (made,) = detected(moment, NOW - HOUR_MS)
    db.write_sync(semantic_store.save, principal, made, NOW - HOUR_MS)
    return made.opportunity_id


def claims(db: Database) -> None:
    context = WorkContext("claim_1", "tab_1", "A", "local", "ada", NOW - HOUR_MS)
    for status, words in (("verified", "The cart opens from the bag icon."), ("unverified", f"Beware of {HOSTILE}")):
        db.write_sync(add_candidate, context, Claimed("cart", words, status, 0.8, "shop.test"), NOW - HOUR_MS)


# -- facts

PLACE = Scope("tab_1", "A", "local", "chat.test")


def fact(db: Database, value: Any, at_ms: int, key: str = "chat.model", place: Scope = PLACE, **more: Any) -> None:
    page = Page(f"https://{place.service_key}/", "h1", place.service_key)
    given = {"certainty": "certain", "source": "agent", "call_id": f"call-{next(_numbers)}", **more}
    db.write_sync(
        fact_store.note, place, [Observation(key, canonical(value), page=page, observed_at_ms=at_ms, **given)]
    )


def facts(db: Database) -> None:
    for number, value in enumerate(("alpha-1", "alpha-2", "beta")):
        fact(db, value, NOW - (3 - number) * DAY_MS)
        fact(db, value, NOW - (3 - number) * DAY_MS + HOUR_MS)
    fact(db, "gamma", NOW - HOUR_MS, certainty="tentative")
    fact(db, True, NOW - HOUR_MS, "auth.logged_in")
    fact(db, HOSTILE, NOW - HOUR_MS, "page.title", Scope("tab_2", "A", "robot", "wiki.test"))


# -- goals


def goals(db: Database) -> None:
    steps = (
        PlannedStep("Put the lamp into the cart", '{"actionKind":"submit_form"}'),
        PlannedStep("Pay", '{"postconditions":{"all":[]}}'),
        PlannedStep(f"Read {HOSTILE}"),
    )
    made = NewGoal("goal_lamp", "local", "ada", "Buy a lamp", NOW - 60_000, 120_000, "agent_driven", "tab_1")
    db.write_sync(goal_store.create_goal, replace(made, owner=Ownership("ada"), steps=steps))
    db.write_sync(lambda conn: goal_store.set_step(conn, "goal_lamp", 1, "done", NOW - 30_000, "verified_success"))
    db.write_sync(goal_store.annotate_goal, "local", "goal_lamp", Note(f"seen {HOSTILE}", "ada"), NOW - 20_000)
    other = NewGoal("goal_hers", "robot", "eve", "Not yours", NOW - 60_000, 120_000)
    db.write_sync(goal_store.create_goal, other)
    done = NewGoal("goal_done", "local", "ada", f"Look at {HOSTILE}", NOW - DAY_MS, 120_000)
    db.write_sync(goal_store.create_goal, done)
    db.write_sync(goal_store.close_goal, "local", "goal_done", "completed", NOW - DAY_MS + 1_000)


# -- tasks

PAGES = TaskContent(
    "site_audit",
    "Audit the shop",
    "Read every page of the shop",
    CompletionCondition("exhaustive", "page", "all_units_processed", None, EvidencePolicy("require_observed", 10)),
    domain="shop.test",
    stable_guidance=(Guidance("g1", "tip", f"Mind {HOSTILE}"),),
    mandatory_checks=(Check("c1", "Look at the imprint"), Check("c2", f"Look at {HOSTILE}")),
)


def tasks(db: Database, units: int = 40) -> str:
    """An open run with units in every state, a completed one of another principal, and a profile."""
    urls = [LONG, *(f"https://shop.test/page/{number}" for number in range(1, units))]

    def write(conn: Any) -> str:
        new = Profile("shop-audit", PAGES, 0.6, 1, archived=False, created_at_ms=NOW, updated_at_ms=NOW)
        profile_store.create(conn, "local", new, ())
        story = run_kit.Story(
            conn, run_kit.begin(conn, PAGES, target_url=LONG, at_ms=NOW - HOUR_MS), at_ms=NOW - HOUR_MS
        )
        story.tell(discovered=run_kit.pages(*urls))
        story.tell(
            updates=(
                *run_kit.moved_pages("checked", *urls[:20]),
                *run_kit.moved_pages("blocked", *urls[20:23]),
                *run_kit.moved_pages("excluded", *urls[23:26]),
            ),
            findings=(replace(run_kit.findings("typo")[0], detail=f"Typo {HOSTILE}"),),
            checks=run_kit.passed("c1"),
        )
        c = task_unit.c
        mine = c.instance_id == story.run.instance_id
        conn.execute(task_unit.update().where(mine, c.ordinal < 14).values(grade="strong", grade_reason=None))
        conn.execute(task_unit.update().where(mine, c.ordinal == 30).values(label=HOSTILE))
        other = run_kit.Story(conn, run_kit.begin(conn, run_kit.items(), run_kit.EVE, at_ms=NOW - DAY_MS), run_kit.EVE)
        other.tell(discovered=run_kit.found("a"), discovery="frozen", updates=run_kit.moved("checked", "a"))
        other.complete()
        return story.run.instance_id

    return db.write_sync(write)  # type: ignore[no-any-return]


# -- notes


def notes(db: Database) -> None:
    wish = NoteWish("local", "shop.test", "returns", f"Never press {HOSTILE}", "user", "block", 30)
    db.write_sync(domain_store.put, wish, NOW - DAY_MS, new_id)
    db.write_sync(domain_store.put, NoteWish("*", "wiki.test", "style", "Be brief.", "agent"), NOW, new_id)
    rule = Draft("local", "Always check the cart before paying.", ("cart", "pay"), "shop", "user")
    db.write_sync(operator_store.store, rule, NOW - DAY_MS, new_id)
    memory = NewMemory("local", "shop.test", "preference", "Prefers dark mode", "/account/*", "user")
    db.write_sync(memory_store.save, memory, NOW - DAY_MS)


def everything(db: Database) -> str:
    """The id of the open run."""
    knowledge(db)
    question(db)
    claims(db)
    facts(db)
    goals(db)
    notes(db)
    return tasks(db)
