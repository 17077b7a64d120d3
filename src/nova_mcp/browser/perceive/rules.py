"""Decisions about pages: what a ref means now, what an action did. Values in, verdicts out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from nova_mcp.browser.observe.error_words import says_error
from nova_mcp.browser.perceive.elements import ElementFacts, identity
from nova_mcp.browser.perceive.scan_values import SeenElement
from nova_mcp.core.page.selectors import looks_generated

# -- what a ref means now


@dataclass(frozen=True, slots=True)
class Expected:
    """What a ref stood for when it was given out."""

    facts: ElementFacts
    origin_path: str


@dataclass(frozen=True, slots=True)
class UseNode:
    """The ref means this node; `rebound` when it is a new node, `drift` when its label changed."""

    node: int
    facts: ElementFacts
    rebound: bool = False
    drift: Literal["name"] | None = None


@dataclass(frozen=True, slots=True)
class RefRefused:
    """The ref means nothing that may be touched."""

    reason: Literal["ref.identity_changed", "ref.ambiguous", "ref.stale", "ref.stale_document"]


def origin_path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _stable_keys(facts: ElementFacts) -> tuple[str, str, str, str]:
    return ("" if looks_generated(facts.id) else facts.id, facts.testid, facts.name_attr, facts.href_path)


def _only_name_changed(before: ElementFacts, after: ElementFacts) -> bool:
    return any(_stable_keys(before)) and identity(replace(after, name=before.name)) == identity(before)


def resolve_ref(
    expected: Expected, url: str, same_document: bool, node: SeenElement | None, matches: Sequence[SeenElement]
) -> UseNode | RefRefused:
    """Decide what a ref stands for, from the node it was given to and the live elements that look the same."""
    if origin_path(url) != expected.origin_path and not (same_document and node is not None):
        return RefRefused("ref.stale_document")
    wanted = identity(expected.facts)
    if node is not None and same_document:
        if identity(node.facts) == wanted:
            return UseNode(node.node, node.facts)
        if _only_name_changed(expected.facts, node.facts):
            return UseNode(node.node, node.facts, drift="name")
        return RefRefused("ref.identity_changed")
    live = [element for element in matches if identity(element.facts) == wanted]
    if len(live) == 1:
        return UseNode(live[0].node, live[0].facts, rebound=True)
    return RefRefused("ref.ambiguous" if live else "ref.stale")


# -- what an action did

DispatchProof: TypeAlias = Literal["event", "host", "assumed", "none"]

QUIET_MS: Final = 80
WINDOW_MS: Final = 600
PENDING_WINDOW_MS: Final = 1500
_WEAK_TYPES: Final = frozenset({"ping", "beacon", "cspviolationreport", "image", "font", "stylesheet", "media"})


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A request that began after dispatch."""

    method: str
    path: str
    status: int | None
    failed: bool = False
    resource_type: str = "fetch"
    same_site: bool = True
    seen_before: bool = False

    @property
    def counts(self) -> bool:
        """Whether it can be the action's doing at all."""
        return not self.seen_before

    @property
    def strong(self) -> bool:
        return self.counts and self.same_site and self.resource_type not in _WEAK_TYPES

    @property
    def pending(self) -> bool:
        return self.status is None and not self.failed


@dataclass(frozen=True, slots=True)
class Signs:
    """Everything seen in the window after an action."""

    page_channels: frozenset[str] = frozenset()
    host_channels: frozenset[str] = frozenset()
    requests: tuple[ActionRequest, ...] = ()
    new_text: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    observer_lost: bool = False


EffectWord: TypeAlias = Literal["strong", "weak", "none", "unknown", "pending", "error_signal"]


def channels_of(signs: Signs) -> tuple[str, ...]:
    started = {"request_started"} if any(request.counts for request in signs.requests) else set()
    return tuple(sorted(signs.page_channels | signs.host_channels | started))


def has_strong(signs: Signs) -> bool:
    return bool(signs.page_channels or signs.host_channels or any(request.strong for request in signs.requests))


def effect_word(signs: Signs) -> EffectWord:
    """One word for the outcome table; a sign of failure outweighs every sign of success."""
    acting = [request for request in signs.requests if request.strong]
    refused = any(request.failed or (request.status or 0) >= 400 for request in acting)
    if refused or signs.alerts or any(map(says_error, signs.new_text)):
        return "error_signal"
    if any(request.pending for request in acting):
        return "pending"
    if has_strong(signs):
        return "strong"
    if any(request.counts for request in signs.requests):
        return "weak"
    return "unknown" if signs.observer_lost else "none"


def observed(signs: Signs) -> bool | None:
    """Whether anything happened; None when nobody was looking."""
    if channels_of(signs) or signs.alerts or signs.new_text:
        return True
    return None if signs.observer_lost else False


def window_left_ms(elapsed_ms: float, quiet_ms: float | None, pending: bool) -> float:
    """How long to go on watching; zero or less means the window is over. `quiet_ms` is None before the first sign."""
    limit = PENDING_WINDOW_MS if pending else WINDOW_MS
    left = limit - elapsed_ms
    if quiet_ms is None or pending:
        return left
    return min(left, QUIET_MS - quiet_ms)


@dataclass(frozen=True, slots=True)
class Proof:
    """What the shield recorded around a press."""

    reached: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    standing: str = "late"
    alive: bool = False
    readable: bool = False


_PRESSES: Final = frozenset({"pointerdown", "mousedown", "click", "keydown", "beforeinput", "input"})


def dispatch_proof(proof: Proof, host_events: Iterable[str]) -> DispatchProof:
    """`none` only when the first listener in the page is still there and saw nothing arrive."""
    if any(name in _PRESSES for name in proof.reached):
        return "event"
    if set(host_events):
        return "host"
    if proof.readable and proof.standing == "first" and proof.alive:
        return "none"
    return "assumed"


def same_destination(href: str, url: str) -> bool:
    """Whether a link led where it said; fragments and a trailing slash make no difference."""

    def place(address: str) -> tuple[str, str, str, str]:
        parts = urlsplit(address)
        return (parts.scheme, parts.netloc.lower(), parts.path.rstrip("/"), parts.query)

    return place(href) == place(url)


def differs_by_anchor(before: str, after: str) -> bool:
    """Whether only the part behind the # is another one; any script can set that, and no server learns of it."""
    return before != after and before.partition("#")[0] == after.partition("#")[0]
