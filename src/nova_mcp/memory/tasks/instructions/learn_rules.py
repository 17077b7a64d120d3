"""What Learn Mode counts: surfaces that were read and interactions that had an effect, each once and capped; pure."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.hosts import normalize_host, site
from nova_mcp.core.urls import classify_segment
from nova_mcp.evidence.grades import is_read_like
from nova_mcp.evidence.model import CallRecord, PageState
from nova_mcp.evidence.rules import effective_page
from nova_mcp.memory.notes.playbook import PLAYBOOK_KEY

CountKind = Literal["surface", "dialog", "interaction"]
LearnOutcome = Literal["complete", "exhausted", "incomplete"]
ActivationRefusal = Literal["claim_required", "domain_mismatch"]

VERSION: Final = "v3"
DELIVERABLE: Final = PLAYBOOK_KEY
SURFACES, INTERACTIONS = "visitedSurfaces", "meaningfulInteractions"

MOST_SLUGS: Final = 2
MOST_DIALOGS: Final = 3
_PREFIX: Final = "nova."
INTERACTING: Final = frozenset(
    {"click_selector", "type_selector", "choose_option", "input_key", "dismiss_blockers", "file_upload"}
)
_PORT: Final = re.compile(r":[0-9]+$")
_GUARDED: Final = "guarded_"
_SETTLED: Final = frozenset({"verified_success", "verified_fail"})


@dataclass(frozen=True, slots=True)
class Countable:
    """One thing a call may add: `key` makes it distinct, at most `cap` of one `group` count, `needs` must count too."""

    kind: CountKind
    key: str
    group: str | None = None
    cap: int | None = None
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Floors:
    surfaces: int
    interactions: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a visit has come."""

    surfaces: int = 0
    interactions: int = 0

    def meets(self, floors: Floors) -> bool:
        return self.surfaces >= floors.surfaces and self.interactions >= floors.interactions


@dataclass(frozen=True, slots=True)
class Counted:
    """Everything that has counted so far."""

    items: frozenset[Countable] = frozenset()

    def holds(self, kind: CountKind, key: str) -> bool:
        return any(one.kind == kind and one.key == key for one in self.items)

    def in_group(self, kind: CountKind, group: str) -> int:
        return sum(one.kind == kind and one.group == group for one in self.items)

    @property
    def progress(self) -> Progress:
        interactions = sum(one.kind == "interaction" for one in self.items)
        return Progress(len(self.items) - interactions, interactions)


def learn_domain(host: str | None, multi_tenant: Collection[str]) -> str | None:
    """The registrable domain that a visit is about."""
    normal = None if host is None else normalize_host(host)
    return None if normal is None else site(normal, multi_tenant)


def may_count(record: CallRecord) -> bool:
    """Whether a call can add anything at all; asked before the store is."""
    return record.kind == "call" and (_is_look(record) or _is_interaction(record))


def countables(record: CallRecord, domain: str, multi_tenant: Collection[str]) -> Iterator[Countable]:
    """What a call adds to a visit of that domain, before it is known what counts already."""
    if record.kind != "call":
        return
    if _is_look(record):
        page = effective_page(record)
        if page.route_key and _host_domain(page, multi_tenant) == domain:
            yield from _looked(_place(page.route_key), record.signals.dialogs)
    elif _is_interaction(record):
        # Input lands on the page that was there before it.
        page = record.before if record.before.url is not None else record.after
        if page.route_key and _host_domain(page, multi_tenant) == domain:
            yield Countable("interaction", _digest(_place(page.route_key), _control(record), _bare(record)))


def admits(one: Countable, *, known: bool, in_group: int, needed: bool) -> bool:
    """Whether it counts, given what counts already."""
    return not known and needed and (one.cap is None or in_group < one.cap)


def after(counted: Counted, record: CallRecord, domain: str, multi_tenant: Collection[str] = ()) -> Counted:
    """What counts once a call is on record."""
    items = set(counted.items)
    for one in countables(record, domain, multi_tenant):
        now = Counted(frozenset(items))
        known = now.holds(one.kind, one.key)
        in_group = 0 if one.group is None else now.in_group(one.kind, one.group)
        if admits(one, known=known, in_group=in_group, needed=one.needs is None or now.holds("surface", one.needs)):
            items.add(one)
    return Counted(frozenset(items))


def learn_progress(records: Iterable[CallRecord], domain: str, multi_tenant: Collection[str] = ()) -> Progress:
    """How far the calls of one agent, oldest first, carry a visit of a domain."""
    counted = Counted()
    for record in records:
        counted = after(counted, record, domain, multi_tenant)
    return counted.progress


def outcome_of(progress: Progress, floors: Floors, exhausted: str | None) -> LearnOutcome:
    """How a visit ended; a reason counts only where something was missing."""
    if progress.meets(floors):
        return "complete"
    return "exhausted" if exhausted else "incomplete"


def _bare(record: CallRecord) -> str:
    return record.tool_name.removeprefix(_PREFIX)


def _is_look(record: CallRecord) -> bool:
    """A read of a page that is no error page; a glance at the state and a search without a hit are none."""
    if record.outcome.kind != "ok" or (record.signals.sight is not None and record.signals.sight.error_page):
        return False
    mode = record.arguments.get("mode") if isinstance(record.arguments, dict) else None
    hits = int("content_exposed" in record.touched.flags)
    return is_read_like(record.tool_name, mode=mode if isinstance(mode, str) else None, hits=hits)


def _is_interaction(record: CallRecord) -> bool:
    name, signals = _bare(record), record.signals
    if signals.sight is not None and signals.sight.error_page and signals.sight.steady:
        return False
    if name.startswith(_GUARDED):
        return bool(record.outcome.action_dispatched) and signals.contract in _SETTLED
    return (
        name in INTERACTING
        and bool(record.outcome.action_dispatched)
        and record.outcome.kind == "ok"
        and signals.page_changed
    )


def _host_domain(page: PageState, multi_tenant: Collection[str]) -> str | None:
    return None if page.url is None else learn_domain(page.url, multi_tenant)


def _place(route: str) -> str:
    """A route in the one spelling of its host; a port makes another place."""
    authority, slash, path = route.partition("/")
    port = _PORT.search(authority)
    return f"{normalize_host(authority) or authority}{'' if port is None else port.group()}{slash}{path}"


def _looked(route: str, dialogs: Iterable[str]) -> Iterator[Countable]:
    place, parent = _digest(route), _slug_parent(route)
    group = None if parent is None else _digest(parent)
    yield Countable("surface", place, group, None if group is None else MOST_SLUGS)
    for name in dict.fromkeys(dialogs):
        yield Countable("dialog", _digest(route, name), place, MOST_DIALOGS, needs=place)


def _slug_parent(route: str) -> str | None:
    """The parent path of a leaf that looks like a title, where that is not the first segment of its path."""
    place, _, fragment = route.partition("#")
    path = fragment if fragment else place.partition("/")[2]
    segments = [part for part in path.lstrip("!").split("/") if part]
    if len(segments) < 2 or classify_segment(segments[-1]) != "slug":
        return None
    return route.rpartition("/")[0]


def _control(record: CallRecord) -> str:
    """What was acted on: its selector, else what it looks like, else what kind of layer it was."""
    touched = record.touched
    return touched.selector_hash or touched.fingerprint_id or ",".join(record.signals.layers)


def _digest(*parts: str) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
