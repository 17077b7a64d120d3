"""The evidence of one call while it is still open: what is known before, during and after."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nova_mcp.browser.targets.registry import Tab
from nova_mcp.calls.page_sight import sight_of
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.page.selectors import normalize_selector, selector_hash
from nova_mcp.core.redaction import redact_arguments, redact_selector
from nova_mcp.core.urls import normalize_url, redact_query, route_key
from nova_mcp.core.values import Json
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Effect, PageState, Touched
from nova_mcp.memory.claims.rules import Reclaimed
from nova_mcp.memory.facts.policies import Lacking
from nova_mcp.memory.notes.domain_model import Due
from nova_mcp.secrets.redactor import Redactor
from nova_mcp.tools.context import Evidence
from nova_mcp.tools.spec import GateId, ToolSpec

if TYPE_CHECKING:
    from nova_mcp.calls.lessons import Lesson
    from nova_mcp.errors import NovaError
    from nova_mcp.storage.errors import StoreUnavailable

NAME_LIMIT = 120


@dataclass(slots=True)
class Envelope:
    """Opened when a call arrives, closed whatever becomes of it."""

    call_id: str
    caller: Caller
    tool_name: str
    arguments: Mapping[str, Json]
    connection: AgentConnection
    started_at_ms: int
    started_mono_ms: float
    evidence: Evidence = field(default_factory=Evidence)
    spec: ToolSpec | None = None
    via: str | None = None
    before: PageState = field(default_factory=PageState)
    # The whole address that the call began on; no record keeps it.
    began_on: str | None = None
    gate_id: str | None = None
    # A gate that would have stopped the call if it were not being tried out.
    shadow_gate: str | None = None
    # What the operator demands of this call and nothing proves.
    lacking: Lacking | None = None
    # What notes about the site have to say to this call, what its answer has to warn of, and gates nobody could judge.
    site: Due | None = None
    # One for each host that a call with several steps was warned on.
    warned: tuple[Due, ...] = ()
    unreadable: frozenset[GateId] = frozenset()
    recorded: bool = False
    # Its tool committed it, and what was wrong with it then.
    committed: bool = False
    decided: "NovaError | None" = None
    # Why there is no record of it.
    unrecorded: "StoreUnavailable | None" = None
    # What it teaches; spoken of once it is on record.
    lesson: "Lesson | None" = None
    # The answer is a refusal of Nova's own, which says nothing about the page.
    refused: bool = False
    # A step's answer may be dropped, so only a call that somebody made is told what somebody must hear.
    is_step: bool = False
    words: tuple[Reclaimed, ...] = ()
    # Names of arguments that never hold private text, and whether this call's own have been read as what they are.
    open_names: frozenset[str] = frozenset()
    understood: bool = False
    redactor: Redactor = field(default_factory=Redactor)

    @property
    def stands_unrecorded(self) -> bool:
        """Whether the answer holds without a record: of a call that only looked, and asked the store for nothing."""
        return self.spec is not None and self.spec.effect == "read" and not self.committed

    @property
    def effect(self) -> Effect:
        return self.spec.effect if self.spec is not None else "admin"

    def close(self, outcome: CallOutcome, mono_ms: float, *, keep_raw_urls: bool) -> CallRecord:
        evidence = self.evidence
        selector = normalize_selector(evidence.selector) if evidence.selector else None
        flags = set(evidence.flags)
        if evidence.tab is not None:
            flags.add("target_resolved")
        if selector is not None:
            flags.add("selector_touched")
        after = page_state(evidence.tab, keep_raw_urls=keep_raw_urls, redactor=self.redactor)
        return CallRecord(
            call_id=self.call_id,
            caller=self.caller,
            tool_name=self.redactor.text(self.tool_name)[:NAME_LIMIT],
            effect=self.effect,
            started_at_ms=self.started_at_ms,
            duration_ms=max(0, round(mono_ms - self.started_mono_ms)),
            outcome=outcome,
            via=self.via,
            task_id=evidence.task_id,
            before=self.before,
            after=after,
            touched=Touched(
                selector=self._kept_selector(selector, keep_raw_urls=keep_raw_urls) if selector else None,
                selector_hash=selector_hash(selector) if selector else None,
                fingerprint_id=evidence.fingerprint_id,
                flags=frozenset(flags),
            ),
            arguments=self._redacted(keep_raw_urls=keep_raw_urls),
            closes=evidence.closes,
            signals=replace(
                evidence.signals,
                scripted=self._scripted(after),
                refused=self.refused,
                sight=sight_of(evidence.tab, self.before, self.began_on, self.redactor),
            ),
        )

    def intent(self, intent_id: str, now_ms: int, *, keep_raw_urls: bool) -> CallRecord:
        """What is about to be done, on record before it is: a server that dies in between is known to have tried."""
        record = self.close(CallOutcome("pending"), self.started_mono_ms, keep_raw_urls=keep_raw_urls)
        return replace(record, call_id=intent_id, kind="intent", effect="commit", started_at_ms=now_ms, closes=None)

    def _scripted(self, after: PageState) -> bool:
        tab, first, last = self.evidence.tab, self.before.page_epoch, after.page_epoch
        if tab is None or tab.scripted_epoch is None or last is None:
            return False
        # A call of several steps may have changed a document that it came to and left again.
        return (last if first is None else first) <= tab.scripted_epoch <= last

    def _kept_selector(self, selector: str, *, keep_raw_urls: bool) -> str:
        return redact_selector(self.redactor.text(selector), keep_raw_urls=keep_raw_urls)

    def _redacted(self, *, keep_raw_urls: bool) -> Json:
        private = self.spec.private_arguments if self.spec is not None else frozenset[str]()
        return redact_arguments(
            {key: value for key, value in self.arguments.items() if key != "_meta"},
            secrets=self.redactor.filter,
            sensitive_fields=frozenset() if self.evidence.input_is_harmless else private,
            # A password may stand under a misspelt name or be meant for a tool that does not exist.
            known_fields=None if self.understood else self.open_names,
            keep_raw_urls=keep_raw_urls,
        )


def page_state(tab: Tab | None, *, keep_raw_urls: bool, redactor: Redactor | None = None) -> PageState:
    """Where a tab stands, from what the host already knows: no page is asked, so a dead one answers too."""
    if tab is None:
        return PageState()
    url = normalize_url(tab.url)
    if url is not None and redactor is not None:
        # Before the query is reduced, which might leave a piece that no longer matches.
        url = redactor.text(url)
    return PageState(
        target_id=tab.target_id,
        sandbox_id=tab.sandbox_id,
        url=url if url is None or keep_raw_urls else redact_query(url),
        route_key=route_key(url) if url else None,
        page_epoch=tab.page_epoch,
    )
