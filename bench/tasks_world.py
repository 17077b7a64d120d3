"""A small made-up web and the agents' tabs on it, whose calls are recorded as those of real ones are."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection

from bench.tasks_judge import Act, Scan, Story
from nova_mcp.calls.page_sight import _redirected
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.core.page.selectors import selector_hash
from nova_mcp.core.urls import redact_query, url_hash
from nova_mcp.errors import NovaError
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Effect, Flag, PageState, Signals, Touched
from nova_mcp.evidence.page_sights import Channels, PageLife, ScanMeasures, ScanSeen, Sight
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.memory.tasks.coverage import evidence_store
from nova_mcp.memory.tasks.coverage.evidence_collector import EvidenceCollector
from nova_mcp.memory.tasks.coverage.locators import path_hash
from nova_mcp.memory.tasks.runs.transactions import Occasion

T = TypeVar("T")
Owner = tuple[str, str]
SITE = "https://shop.example"
PLAIN = tuple(f"{SITE}/p{number}" for number in range(5))
LISTS = (f"{SITE}/list?page=1", f"{SITE}/list?page=2", f"{SITE}/list")
LOGIN, ENGLISH = f"{SITE}/login", f"{SITE}/en"
GONE, DOWN = f"{SITE}/gone", f"{SITE}/down"
# Where addresses lead: the first ones to the same page under another spelling, the others somewhere else.
SPELLED = {
    "http://shop.example/p0": PLAIN[0],
    "https://www.shop.example/p1": PLAIN[1],
    f"{SITE}/P2": PLAIN[2],
    "http://www.shop.example/list?page=1": LISTS[0],
}
ELSEWHERE = {f"{SITE}/account": LOGIN, f"{SITE}/orders": LOGIN, f"{SITE}/": ENGLISH}
REDIRECTS = {**SPELLED, **ELSEWHERE}
STATUSES: dict[str, int | None] = {GONE: 404, DOWN: None}
ADDRESSES = (*PLAIN, *LISTS, *SPELLED, *ELSEWHERE, GONE, DOWN, LOGIN, ENGLISH)
EFFECTS: dict[str, Effect] = {"nova.navigate": "navigate", "nova.click_selector": "act", "nova.eval": "write"}
TEXT = "nova_full_page_text_v1"
_CHANNELS = ("visible_text", "aria_labels", "inputs", "alt_text")


class SetClock:
    """Stands until it is moved."""

    def __init__(self, now_ms: int) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> float:
        return float(self.at_ms)


@dataclass
class Tab:
    """What the host knows of one tab."""

    target: str
    url: str | None = None
    claim: str | None = None
    epoch: int = 0
    status: int | None = None
    error_page: bool = False
    scripted_epoch: int | None = None
    chain: tuple[str, ...] = ()
    active: deque[int] = field(default_factory=lambda: deque(maxlen=64))
    left: deque[int] = field(default_factory=lambda: deque(maxlen=32))

    @property
    def life(self) -> PageLife:
        return PageLife(tuple(self.active), tuple(self.left))

    @property
    def touched(self) -> bool:
        return self.scripted_epoch == self.epoch


@dataclass
class World:
    """Tabs, a clock, a ledger, and the story as it really was."""

    conn: Connection
    dice: random.Random
    clock: SetClock
    recorder: Recorder
    evidence: EvidenceCollector
    story: Story
    tabs: dict[Owner, Tab] = field(default_factory=dict)

    @property
    def ports(self) -> Ports:
        return Ports(self.clock, SystemIds(self.clock))

    @property
    def lives(self) -> dict[str, PageLife]:
        return {tab.target: tab.life for tab in self.tabs.values()}

    def wait(self, ms: int) -> None:
        self.clock.at_ms += ms

    def tab_of(self, agent: Owner) -> Tab:
        if agent not in self.tabs:
            self.tabs[agent] = Tab(f"tab_{self.dice.getrandbits(48):x}")
        return self.tabs[agent]

    # -- what happens by itself

    def stir(self, agent: Owner) -> None:
        tab = self.tab_of(agent)
        tab.active.append(self.clock.at_ms)
        self.story.stirred.setdefault(tab.target, []).append(self.clock.at_ms)

    def _leave(self, tab: Tab, at_ms: int) -> None:
        tab.left.append(at_ms)
        tab.active.append(at_ms)
        self.story.left.setdefault(tab.target, []).append(at_ms)

    def close(self, agent: Owner) -> None:
        tab = self.tabs.pop(agent, None)
        if tab is None or tab in self.tabs.values():
            return
        self._leave(tab, self.clock.at_ms)
        evidence_store.target_ended(self.conn, tab.target, self.clock.at_ms, tab.life)

    # -- what agents do

    def navigate(self, agent: Owner, address: str, **more: Any) -> None:
        tab = self.tab_of(agent)
        start, took = self.clock.at_ms, self.dice.randint(20, 400)
        before, began_scripted = tab.epoch, tab.touched
        if tab.url is not None:
            self._leave(tab, start + took // 2)
        tab.epoch += 1
        tab.url = REDIRECTS.get(address, address)
        tab.chain = (address,) if address in REDIRECTS else ()
        tab.status = STATUSES.get(tab.url, 200)
        tab.error_page = tab.status is None or tab.status >= 400
        self.wait(took)
        ok = tab.url != DOWN
        self._happened(agent, tab, "nova.navigate", start, ok=ok, began=(before, began_scripted), **more)

    def look(self, agent: Owner, tool: str, **more: Any) -> None:
        """Anything that is done on the page that stands in the tab."""
        tab = self.tab_of(agent)
        if tab.url is None:
            self.navigate(agent, self.dice.choice(ADDRESSES))
        start = self.clock.at_ms
        if tool == "nova.eval":
            tab.scripted_epoch = tab.epoch
        self.wait(self.dice.randint(5, 300))
        self._happened(agent, tab, tool, start, began=(tab.epoch, tab.touched), **more)

    def moved_under(self, agent: Owner, tool: str) -> None:
        """A read during which the page goes on to another one."""
        tab = self.tab_of(agent)
        if tab.url is None:
            return
        start, before, touched = self.clock.at_ms, tab.epoch, tab.touched
        self.wait(20)
        self._leave(tab, self.clock.at_ms)
        tab.epoch += 1
        tab.url, tab.chain, tab.status, tab.error_page = self.dice.choice(PLAIN), (), 200, False
        self.wait(20)
        self._happened(agent, tab, tool, start, began=(before, touched))

    def _happened(self, agent: Owner, tab: Tab, tool: str, start: int, *, began: tuple[int, bool], **more: Any) -> None:
        url = tab.url
        if url is None:
            raise AssertionError("a call without a page")
        act = Act(
            agent, tab.target, start, self.clock.at_ms, tool, url, tab.claim,
            steady=began[0] == tab.epoch, error_page=tab.error_page, touched=tab.touched,
            led_from=tuple(one for one in tab.chain if one in SPELLED), **more,
        )  # fmt: skip
        self.story.acts.append(act)
        record = _record(act, tab, scripted=tab.touched or began[1], server=self.recorder.server_id, ids=self.ports.ids)
        if act.kept:
            self.recorder._append(self.conn, record, self.recorder._also)
        else:
            self.evidence.missed(record)

    def ask(self, agent: Owner, tool: str, work: Callable[[Connection, Occasion], T]) -> T | NovaError:
        """A call on a run, as its tool commits it."""
        record = CallRecord(
            call_id=self.ports.ids.call_id(),
            caller=Caller(*agent, self.recorder.server_id),
            tool_name=tool,
            effect="write",
            started_at_ms=self.clock.at_ms,
            duration_ms=1,
            outcome=CallOutcome("ok"),
        )
        at = Occasion(agent, self.clock.at_ms, self.lives)
        return self.recorder._append_written(self.conn, record, self.recorder._also, lambda conn, _: work(conn, at))


def _record(act: Act, tab: Tab, *, server: Any, ids: Any, scripted: bool = False) -> CallRecord:
    flags: set[Flag] = {"content_exposed"} if act.reads or act.hit else set()
    state = PageState(tab.target, "A", redact_query(act.url), None, tab.epoch)
    sight = Sight(
        url=act.url,
        url_hash=url_hash(act.url),
        path_hash=path_hash(act.url),
        http_status=tab.status,
        error_page=act.error_page,
        steady=act.steady,
        agent_scripted=act.touched,
        redirected=_redirected(tab.chain, act.url),
        life=tab.life,
    )
    return CallRecord(
        call_id=ids.call_id(),
        caller=Caller(*act.agent, server),
        tool_name=act.tool,
        effect=EFFECTS.get(act.tool, "read"),
        started_at_ms=act.at_ms,
        duration_ms=act.end_ms - act.at_ms,
        outcome=CallOutcome("ok" if act.ok else "failed"),
        task_id=act.claim,
        before=state,
        after=state,
        touched=Touched(act.selector, selector_hash(act.selector) if act.selector else None, None, frozenset(flags)),
        arguments={} if act.mode is None else {"mode": act.mode},
        signals=Signals(scripted=scripted, sight=sight, scan=None if act.scan is None else _seen(act, tab, act.scan)),
    )


def _seen(act: Act, tab: Tab, scan: Scan) -> ScanSeen:
    measures = ScanMeasures(
        url_hash=url_hash(act.url),
        url_changed=scan.moved,
        failed=scan.failed,
        hydration=scan.hydration,  # type: ignore[arg-type]
        http_status=tab.status,
        extracted_chars=scan.extracted,
        measured_chars=scan.measured,
        frames=scan.frames,
        whole=scan.whole,
        channels=Channels(**{name: number < scan.channels for number, name in enumerate(_CHANNELS)}),
        frames_included=scan.frames_read,
    )
    return ScanSeen(scan.scan_id, "sha256:0", measures, asks_channels=scan.asks_channels)
