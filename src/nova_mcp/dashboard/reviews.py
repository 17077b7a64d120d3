"""Reviews: what the operator decides about entries and questions, each asked first and done once by the tool for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from sqlalchemy import Connection

from nova_mcp.calls.model import Answer
from nova_mcp.core.values import Json
from nova_mcp.dashboard.charts.lifeline import Lane, lane_of
from nova_mcp.dashboard.context import Desk, Entry, Leave, Outcome, Place, View, Visit, missing
from nova_mcp.dashboard.pages import entry as entry_page
from nova_mcp.dashboard.pages import review as review_page
from nova_mcp.dashboard.pages.entry import EntryView
from nova_mcp.dashboard.pages.review import Question
from nova_mcp.dashboard.request_query import address, text, whole
from nova_mcp.dashboard.sessions import Notice
from nova_mcp.memory.knowledge.model import Problem, ScopeName
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.promotion import promoter
from nova_mcp.memory.promotion.model import ConsentGates
from nova_mcp.memory.promotion.promoter import Decision, Wish
from nova_mcp.memory.promotion.prompts.rules import SemanticVerdict

Act = Literal["decide", "retire"]

ACTS: Final[tuple[Act, ...]] = get_args(Act)
VERDICTS: Final[dict[SemanticVerdict, str]] = {
    "not_applicable": "there is nothing to store",
    "already_known": "it is known already",
    "unsafe": "storing it would be unsafe",
    "upsert": "an entry was stored for it",
    "defer": "ask again tomorrow",
}
NOT_OPEN: Final = "pks.scope_not_open"
_TOOLS: Final[dict[Act, str]] = {"decide": "nova.learn_promote", "retire": "nova.pks_deprecate"}
_URL_CHARS: Final = 2_000
FIELDS: Final = ("scope", "id", "act", "transition", "reason")


async def review(visit: Visit) -> View:
    principal, before = visit.session.principal, whole(visit, "before")
    found = await visit.desk.read(review_page.review, principal, before, visit.desk.now_ms(), visit.desk.consent_gates)
    following = found.waiting.next_before and address("/review", before=found.waiting.next_before)
    return View(
        "review/review.html", {"title": "Review", "page": found, "first": before is None, "following": following}
    )


# -- an entry


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants done with an entry. `transition` is the one that was shown: another is never applied."""

    scope: ScopeName
    stable_id: str
    act: Act
    transition: str = ""
    reason: str = ""

    @property
    def page(self) -> str:
        return address("/knowledge/entry", scope=self.scope, id=self.stable_id)

    @property
    def fields(self) -> dict[str, str]:
        return {"scope": self.scope, "id": self.stable_id, "act": self.act, "transition": self.transition}

    @property
    def arguments(self) -> dict[str, Json]:
        if self.act == "retire":
            return {"scope": self.scope, "phenomenonId": self.stable_id, "reason": self.reason}
        return {"scope": self.scope, "stableIds": [self.stable_id], "transition": self.transition}


@dataclass(frozen=True, slots=True)
class Preview:
    """What the gates say of an entry now."""

    entry: EntryView
    decision: Decision

    @property
    def before(self) -> Lane:
        return lane_of(self.decision.from_level, deprecated=self.decision.verdict.kind == "revive")

    @property
    def after(self) -> Lane:
        retires = self.decision.verdict.kind == "deprecation" and self.decision.approved
        return lane_of(self.decision.to_level, deprecated=retires)


def preview(conn: Connection, scope: ScopeName, stable_id: str, now_ms: int, consent: ConsentGates) -> Preview | None:
    found = entry_page.entry(conn, scope, stable_id, now_ms, consent)
    if found is None:
        return None
    (decision,) = promoter.previewed(conn, Wish(scope, (stable_id,), consent=consent), now_ms)
    return Preview(found, decision)


async def ask_entry(visit: Visit) -> View:
    asked = _asked({name: text(visit, name) for name in ("scope", "id", "act")})
    if isinstance(asked, View):
        return asked
    desk = visit.desk
    found = await desk.read(preview, asked.scope, asked.stable_id, desk.now_ms(), desk.consent_gates)
    if found is None:
        return missing(f"{asked.scope} has no entry of that name.")
    title = "Have the gates decide" if asked.act == "decide" else "Retire this entry"
    transition = found.decision.verdict.kind if found.decision.approved else ""
    fields = {**asked.fields, "transition": transition or ""}
    return View("review/review_entry.html", {"title": title, "page": found, "asked": asked, "fields": fields})


async def review_entry(visit: Visit) -> Outcome:
    asked = _asked({name: visit.said(name) if name == "reason" else visit.field(name) for name in FIELDS})
    if isinstance(asked, View):
        return asked
    if asked.act == "decide" and not asked.transition:
        return Leave(asked.page, Notice("Nothing was decided: no gate passes.", "bad"))
    url = visit.field("url", _URL_CHARS)
    answer = await (_opened(visit.desk, asked, url) if url else visit.desk.call(_TOOLS[asked.act], asked.arguments))
    if answer.structured.get("reasonCode") == NOT_OPEN:
        return _open_first(asked, told(answer) if url else "")
    return Leave(asked.page, Notice(told(answer), "bad" if answer.is_error or not _moved(answer) else "good"))


def _asked(given: Mapping[str, str]) -> Asked | View:
    scope = scope_of(given["scope"])
    if isinstance(scope, Problem):
        return missing(scope.message)
    act = next((one for one in ACTS if one == given["act"]), None)
    if act is None or not given["id"].isprintable():
        return missing("There is nothing of that kind to review.")
    return Asked(scope, given["id"], act, given.get("transition", ""), given.get("reason", ""))


def _open_first(asked: Asked, why: str) -> View:
    """Knowledge is changed only with the site before one's eyes, the operator's too."""
    fields = {**asked.fields, "reason": asked.reason}
    values = {"title": "The site has to be open", "asked": asked, "fields": fields, "why": why}
    return View("review/review_open.html", values, 409)


async def _opened(desk: Desk, asked: Asked, url: str) -> Answer:
    """The same with a tab of its own, which is closed again; all of it is in the ledger."""
    opened = await desk.call("nova.tab_new", {"url": url, "activate": False})
    tab = opened.structured.get("targetId")
    try:
        if opened.is_error:
            return opened
        return await desk.call(_TOOLS[asked.act], asked.arguments)
    finally:
        if isinstance(tab, str):
            await desk.call("nova.tab_close", {"targetId": tab})


# -- a question


async def ask_question(visit: Visit) -> View:
    found = await visit.desk.read(review_page.one_question, visit.session.principal, text(visit, "id"))
    if found is None:
        return missing("None of your agents was asked such a thing.")
    return _question(found)


def _question(found: Question) -> View:
    return View("review/review_question.html", {"title": "Answer a question", "page": found, "verdicts": VERDICTS})


async def review_question(visit: Visit) -> Outcome:
    opportunity_id, chosen = visit.field("id"), visit.field("verdict")
    verdict = next((one for one in VERDICTS if one == chosen), None)
    if verdict is None:
        return missing("A question is answered with one of the verdicts.")
    reason = visit.said("reason")
    arguments: dict[str, Json] = {"opportunityId": opportunity_id, "verdict": verdict}
    answer = await visit.desk.call(
        "nova.learn_resolve_opportunity", {**arguments, "reason": reason} if reason else arguments
    )
    if answer.is_error or not answer.structured.get("ok", True):
        return Leave("/review", Notice(told(answer), "bad"))
    return Leave("/review", Notice(f"Answered: {VERDICTS[verdict]}.", "good"))


# -- what came of it


def _moved(answer: Answer) -> bool:
    body = answer.structured
    return bool(body.get("applied") or body.get("deprecated"))


def told(answer: Answer) -> str:
    """What a tool answered, in a sentence for a person."""
    body = answer.structured
    if answer.is_error or not body.get("ok", True):
        if body.get("reasonCode") == "already_resolved":
            return "Nothing changed: it was answered before."
        message = str(body.get("message") or body.get("reasonCode") or "that did not work")
        return f"Nothing changed: {message}"
    if body.get("deprecated"):
        return f"{body['phenomenonId']} is retired: {body['reason']}"
    decisions = body.get("decisions")
    return _decided(decisions[0]) if isinstance(decisions, list) and decisions else "Nothing changed."


def _decided(one: Json) -> str:
    if not isinstance(one, Mapping):
        return "Nothing changed."
    names = {0: "candidate", 1: "shadow", 2: "active"}
    if one.get("applied"):
        before, after = one.get("fromLevel"), one.get("toLevel")
        words = f"{names[int(str(before))]} → {names[int(str(after))]}"
        return f"{one.get('stableId')}: {'retired' if one.get('reasonKind') == 'deprecation' else words}."
    why = str(one.get("rejectionReason") or one.get("writeError") or "no gate passes")
    return f"Nothing changed: {'it has moved meanwhile' if why == 'not_applicable' else why}."


PLACES = (
    Place("/review", "review", get=review, menu=Entry("Memory", "Review")),
    Place("/review/entry", "review", get=ask_entry, post=review_entry),
    Place("/review/question", "review", get=ask_question, post=review_question),
)
