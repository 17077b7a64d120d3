"""What a finished call teaches beside its own matter: what to ask the agent about, and what it was seen to use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.calls.endings import Ending, Failed
from nova_mcp.calls.envelope import Envelope
from nova_mcp.calls.model import Answer
from nova_mcp.core.page.control_labels import BlockerKind
from nova_mcp.core.page.selectors import selector_class
from nova_mcp.core.redaction import redact_selector
from nova_mcp.core.urls import page_origin
from nova_mcp.core.values import Json
from nova_mcp.evidence.model import Learned
from nova_mcp.memory.journal.observations import digest
from nova_mcp.memory.knowledge.model import CANDIDATE, Problem, ScopeName
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.promotion.learning import Learning
from nova_mcp.memory.promotion.prompts.prompter import Asking
from nova_mcp.memory.promotion.prompts.rules import Moment
from nova_mcp.memory.promotion.prompts.text import (
    BLOCK,
    SUMMARY_BLOCK,
    prompt_block,
    prompt_line,
    summary_block,
    summary_line,
)
from nova_mcp.settings import ToolNames
from nova_mcp.tools.browse.learning_signals import lasting_selector
from nova_mcp.tools.names import published_name

AUTO_BLOCK: Final = "pksAutoLearn"
ACTS: Final = frozenset({"act", "commit"})
_ASKED_ABOUT: Final = frozenset({"consent", "login_wall"})
_CLICKS: Final = frozenset({"nova.click_selector"})


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one call teaches; what it says in the answer is known once the call is recorded."""

    asking: tuple[Asking, ...] = ()
    used: tuple[ScopeName, str] | None = None

    def blocks(self, learned: Sequence[Learned], spelling: ToolNames) -> Iterator[tuple[str, dict[str, Json], str]]:
        """Blocks for the answer, each with the line that says it in text; one prompt at most."""
        for one in learned[:1]:
            yield AUTO_BLOCK, learned_block(one), f"pks: {one.stable_id} noted as a candidate ({one.trigger})"
        for asking in self.asking:
            if asking.summary is not None:
                yield SUMMARY_BLOCK, summary_block(asking.summary), summary_line(asking.summary)
            if asking.prompt is not None:
                yield (
                    BLOCK,
                    prompt_block(asking.prompt, partial(published_name, spelling=spelling)),
                    prompt_line(asking.prompt),
                )


NO_LESSON: Final = Lesson()


class Lessons:
    """Looks at every call that a caller made itself, before its record is written."""

    def __init__(self, learning: Learning, browser: Browser, *, keep_raw_urls: bool) -> None:
        self._learning = learning
        self._browser = browser
        self._keep_raw_urls = keep_raw_urls

    def draw(self, envelope: Envelope, ending: Ending | None = None) -> Lesson:
        """What there is to learn; everything that has to be written goes into the call's own transaction. A call that
        its tool commits has no ending yet."""
        tab, url = envelope.evidence.tab, envelope.before.url
        origin = None if url is None else page_origin(url)
        if tab is None or origin is None or envelope.is_step:
            return Lesson()
        asking = self._asking(envelope, ending, tab, origin)
        if asking is not None:
            envelope.evidence.also.append(asking.also)
        return Lesson((asking,) if asking is not None else (), self._used(envelope, origin))

    def taught(self, envelope: Envelope, lesson: Lesson) -> None:
        """The call is on record: what it showed may be spoken of."""
        for asking in lesson.asking:
            asking.delivered()
        if lesson.used is not None:
            self._learning.advisor.used(envelope.caller.owner, *lesson.used, envelope.tool_name)

    # -- questions

    def _asking(self, envelope: Envelope, ending: Ending | None, tab: Tab, origin: str) -> Asking | None:
        prompter, principal = self._learning.prompter, envelope.caller.principal
        if page_origin(tab.url) != origin:
            return None if self._still_open(envelope, origin) else prompter.leaving(principal, origin)
        if tab.scripted_epoch == tab.page_epoch:
            return None
        return prompter.asking(principal, origin, self._moments(envelope, ending, tab, origin), envelope.connection)

    def _still_open(self, envelope: Envelope, origin: str) -> bool:
        site = scope_of(origin)
        return any(scope_of(tab.url) == site for tab in self._browser.targets.list_tabs(envelope.caller))

    def _moments(self, envelope: Envelope, ending: Ending | None, tab: Tab, origin: str) -> tuple[Moment, ...]:
        if envelope.effect not in ACTS:
            return ()
        found = [self._layer(envelope, kind, layer, origin) for kind, layer in _met(envelope, ending, tab).items()]
        repeated = self._repeated(envelope, origin)
        return tuple(found if repeated is None else [*found, repeated])

    def _layer(self, envelope: Envelope, kind: str, layer: str, origin: str) -> Moment:
        evidence, kept = envelope.evidence, self._kept(envelope, layer)
        pressed = evidence.selector if evidence.signals.layer == kind else None
        return Moment(
            origin,
            digest("layer", kind, kept)[:16],
            (cast(BlockerKind, kind),),
            selector=None if pressed is None else self._kept(envelope, pressed),
            layer=kept,
            tool=envelope.tool_name,
        )

    def _repeated(self, envelope: Envelope, origin: str) -> Moment | None:
        selector = envelope.evidence.selector
        if selector is None or envelope.tool_name not in _CLICKS or not envelope.evidence.action_dispatched:
            return None
        if selector_class(selector) != "fragile":
            return None
        kept = self._kept(envelope, selector)
        clicks = self._learning.prompter.clicked(envelope.caller.principal, origin, kept)
        return Moment(
            origin,
            digest("repeat", kept)[:16],
            selector=kept,
            selector_class="fragile",
            clicks=clicks,
            tool=envelope.tool_name,
        )

    def _kept(self, envelope: Envelope, selector: str) -> str:
        return redact_selector(envelope.redactor.text(selector), keep_raw_urls=self._keep_raw_urls)

    # -- use

    def _used(self, envelope: Envelope, origin: str) -> tuple[ScopeName, str] | None:
        evidence, scope = envelope.evidence, scope_of(origin)
        proven = evidence.signals.label == "success" and evidence.verification == "verified"
        if isinstance(scope, Problem) or not proven or evidence.selector is None or envelope.effect not in ACTS:
            return None
        if evidence.signals.framed:
            return None
        return scope, self._kept(envelope, evidence.selector)


def _met(envelope: Envelope, ending: Ending | None, tab: Tab) -> dict[str, str]:
    """The layers an action came across: those it pressed in or beside, and those that kept it from acting."""
    met = dict(envelope.evidence.layers)
    if isinstance(ending, Failed) and ending.error.reason_code == "action.obstructed":
        by = ending.error.details.get("obstructedBy")
        kind = by.get("blockerKind") if isinstance(by, Mapping) else None
        known = {layer.kind: lasting_selector(layer.element) for layer in tab.blockers.on(tab.page_epoch)}
        if isinstance(kind, str):
            met.setdefault(kind, known.get(kind, ""))
        elif tab.login_wall_epoch == tab.page_epoch:
            met.setdefault("login_wall", "")
    return {kind: selector for kind, selector in met.items() if kind in _ASKED_ABOUT}


def learned_block(one: Learned) -> dict[str, Json]:
    return {
        "scope": one.scope,
        "candidateKey": one.candidate_key,
        "stableId": one.stable_id,
        "level": CANDIDATE,
        "trigger": one.trigger,
    }


def with_lessons(answer: Answer, lesson: Lesson, learned: Sequence[Learned], spelling: ToolNames) -> Answer:
    """The answer with what the call has taught; a text that is the typed form stays that."""
    for name, block, line in lesson.blocks(learned, spelling):
        answer = answer.with_block(name, block, line)
    return answer
