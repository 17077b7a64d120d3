"""What a look says about live facts: the hint to report something, and what Nova notes down by itself."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from nova_mcp.browser.observe.page_witness import StoreFacts
from nova_mcp.browser.perceive.scan_values import AuthSurface, SeenPage
from nova_mcp.core.signal_vocabulary import SIGNALS
from nova_mcp.core.tokens import estimate_tokens, fit_tokens, line_tokens
from nova_mcp.core.values import Json
from nova_mcp.memory.facts.model import Certainty, Fact, FactState, ServiceKind
from nova_mcp.memory.facts.rules import DETECTED, Hint
from nova_mcp.memory.facts.service import Advice
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.read.hint import Look, unless_down
from nova_mcp.tools.spec import Part, compact
from nova_mcp.tools.times import utc
from nova_mcp.verification import model as verification

# A line shorter than this says nothing any more.
LEAST_LINE: Final = 8
FACTS_TOKENS: Final = 300
DOUBT_TOKENS: Final = 40
DOUBTABLE: Final = (*DETECTED, "core.ui.language")
_LOGIN_STAGES: Final = frozenset({"login_wall", "identity_step", "federated_login"})


class HintFact(Part):
    value_json: str
    fact_state: FactState
    certainty_level: Certainty
    last_observed_at: str


class OkHintsPart(Part):
    should_observe: bool
    missing_or_stale_keys: list[str]
    last_observed_ago_ms: int | None
    service_key: str | None
    first_visit: bool
    url_changed: bool
    current_facts: dict[str, HintFact] | None


class UnchangedHintsPart(Part):
    """The same hint as before; what is known was told then."""

    should_observe: bool
    missing_or_stale_keys: list[str]
    last_observed_ago_ms: int | None
    service_key: str | None
    first_visit: bool
    url_changed: bool
    unchanged: Literal[True] = True


OkHints: TypeAlias = OkHintsPart | UnchangedHintsPart


@dataclass(slots=True)
class FactHint:
    """Whether this caller should report what the page shows, and where the page looks otherwise than was reported."""

    ctx: ToolContext
    advice: Advice | None = None
    part: OkHints | None = None
    line: str = ""
    omitted: tuple[str, ...] = ()
    # For a warning: nothing where no agent said what Nova could see otherwise.
    reserved: int = 0
    doubts: list[str] = field(default_factory=list)

    async def read(self) -> None:
        place = self.ctx.facts.place(self.ctx.tab)
        self.advice = None if place is None else await self.ctx.facts.advice(place, self.ctx.connection)

    def take(self, room: int) -> int:
        self._write(max(0, room))
        facts = {} if self.advice is None else self.advice.facts
        theirs = [key for key in DOUBTABLE if key in facts and facts[key].source == "agent"]
        self.reserved = DOUBT_TOKENS if theirs else 0
        return line_tokens(self.line) + self.reserved

    def _write(self, room: int) -> None:
        advice = self.advice
        if advice is None or advice.hint is None:
            self.part, self.line, self.omitted = None, "", ()
            return
        facts, cut = ({}, False) if advice.unchanged else _facts_within(advice, FACTS_TOKENS)
        omitted = ("okHints.currentFacts",) if cut else ()
        self.part = _part(advice, advice.hint, facts)
        self.line = fit_tokens(_line(advice, advice.hint), room) if room >= LEAST_LINE else ""
        self.omitted = omitted if self.line else (*omitted, "okHints")

    async def settle(self, look: Look) -> None:
        if look.moved:
            self.advice = None
            await unless_down(self.read(), None)
            # No longer than what was kept free for the hint about the page before.
            self._write(estimate_tokens(self.line))
        if self.advice is not None:
            self.ctx.facts.told(self.advice)
            self.doubts = _doubts(self.advice, look.sighted)

    def fields(self) -> dict[str, object]:
        return {"ok_hints": self.part, "warnings": self.doubts}

    @property
    def lines(self) -> str:
        told = self.doubts and self.reserved
        doubt = fit_tokens(f"ok: {' '.join(self.doubts)}", self.reserved - 1) if told else ""
        return "\n".join(line for line in (self.line, doubt) if line)


def _doubts(advice: Advice, seen: Mapping[str, Json]) -> list[str]:
    """Where the page looks otherwise than an agent reported; the fact stays as it is."""
    return [
        f"{key}={_readable(advice.facts[key])} was reported, but to Nova the page looks {seen[key]}; look again."
        for key in advice.doubted(seen)
    ]


def _part(advice: Advice, needed: Hint, facts: dict[str, HintFact]) -> OkHints:
    if advice.unchanged:
        return UnchangedHintsPart(
            should_observe=True,
            missing_or_stale_keys=list(needed.keys),
            last_observed_ago_ms=needed.oldest_ago_ms,
            service_key=advice.service_key,
            first_visit=needed.first_visit,
            url_changed=needed.url_changed,
        )
    return OkHintsPart(
        should_observe=True,
        missing_or_stale_keys=list(needed.keys),
        last_observed_ago_ms=needed.oldest_ago_ms,
        service_key=advice.service_key,
        first_visit=needed.first_visit,
        url_changed=needed.url_changed,
        current_facts=facts or None,
    )


def _line(advice: Advice, needed: Hint) -> str:
    # The field says on every page that something was never reported; who reads along has to be told of a visit once.
    reasons = (("first visit", needed.first_visit and not advice.visiting), ("url changed", needed.url_changed))
    why = [word for word, so in reasons if so]
    reason = f" ({', '.join(why)})" if why else ""
    told = () if advice.unchanged else [one for one in _ranked(advice) if one.key in needed.keys]
    known = "".join(f" {one.key}={_readable(one)}" for one in told)
    return f"ok: observe {' '.join(needed.keys) or 'again'}{reason}" + (f"; was{known}" if known else "")


def _readable(one: Fact) -> str:
    return json.dumps(json.loads(one.value), ensure_ascii=False, separators=(",", ":"))


def _ranked(advice: Advice) -> list[Fact]:
    """What is asked for first, then the core signals, then the rest."""
    wanted = () if advice.hint is None else advice.hint.keys
    ranks = {key: rank for rank, key in reversed(list(enumerate((*wanted, *SIGNALS))))}
    return sorted(advice.facts.values(), key=lambda one: (ranks.get(one.key, len(SIGNALS) + len(wanted)), one.key))


def _facts_within(advice: Advice, room: int) -> tuple[dict[str, HintFact], bool]:
    shown: dict[str, HintFact] = {}
    for one in _ranked(advice):
        fact = HintFact(
            value_json=_readable(one),
            fact_state=one.state,
            certainty_level=one.certainty,
            last_observed_at=utc(one.last_observed_at_ms),
        )
        room -= estimate_tokens(compact({one.key: fact.model_dump(by_alias=True)}))
        if room < 0:
            return shown, True
        shown[one.key] = fact
    return shown, False


# -- what Nova sees by itself


def sightings(kind: ServiceKind, page: SeenPage | None, auth: AuthSurface | None, *, sends: bool) -> dict[str, Json]:
    """The signals that a look at the page settles; what it leaves open is no signal."""
    seen: dict[str, Json] = {}
    if auth is not None and auth.logged_in:
        seen["core.login_state"] = "logged_in"
    elif auth is not None and auth.login_wall_visible:
        seen["core.login_state"] = "logged_out"
    if auth is not None and auth.stage in _LOGIN_STAGES and not auth.logged_in:
        seen["core.page.type"] = "login"
    elif kind == "chat" and sends:
        seen["core.page.type"] = "chat"
    language = "" if page is None else page.lang.strip().lower().replace("_", "-").partition("-")[0]
    if language.isascii() and language.isalpha() and len(language) in (2, 3):
        seen["core.ui.language"] = language
    if page is not None and page.theme in ("light", "dark"):
        seen["core.ui.theme"] = page.theme
    return seen


def note_page(
    ctx: ToolContext, page: SeenPage | None, auth: AuthSurface | None, *, sends: bool = False
) -> dict[str, Json]:
    """Hand over what this call has read of the page anyway; a page that an agent's script ran in proves nothing."""
    tab = ctx.tab
    place = ctx.facts.place(tab)
    if place is None or tab.scripted_epoch == tab.page_epoch:
        return {}
    if page is not None and ctx.facts.place(tab, page.url) != place:
        # The tab has moved on since: this was seen on another page, perhaps of another service.
        return {}
    seen = sightings(place.service.kind, page, auth, sends=sends)
    also = ctx.facts.seen(place, seen, ctx.call.call_id)
    if also is not None:
        ctx.evidence.also.append(also)
    return seen


# -- facts in contracts


def stored_facts(ctx: ToolContext) -> StoreFacts:
    """Reads live facts for contracts: stale and doubtful ones are unknown, as all are while the store is away."""

    async def read(keys: Collection[str]) -> dict[str, verification.Fact]:
        place = ctx.facts.place(ctx.tab)
        if place is None:
            return {}
        names = {key: key.removeprefix("ok.") if key.count(".") > 1 else key for key in keys}
        try:
            found = await ctx.facts.read(place, {*names.keys(), *names.values()})
        except StoreUnavailable:
            return {key: verification.Unseen("fact_unreadable") for key in keys}
        reading: dict[str, verification.Fact] = {}
        for key, name in names.items():
            if (known := found.get(key) or found.get(name)) is not None:
                reading[key] = _as_read(*known)
        return reading

    return read


def _as_read(fact: Fact, fitness: str) -> verification.Fact:
    match fitness:
        case "fit":
            return verification.Seen(json.loads(fact.value), f"{fact.version}")
        case "stale":
            return verification.Unseen("stale_fact")
        case _:
            return verification.Unseen("fact_unreadable")
