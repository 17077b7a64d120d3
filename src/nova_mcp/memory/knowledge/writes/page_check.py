"""What the open page says to a write: taken before the transaction, judged in it against what is stored by then."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final

from nova_mcp.core.page.looks import MAX_SELECTORS, SelectorSeen
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal, holding
from nova_mcp.memory.knowledge.matching.page_facts import (
    live_looks,
    observed_signals,
    print_of,
    surroundings,
    wanted_of,
)
from nova_mcp.memory.knowledge.model import Action, Content, ElementPrint, Phenomenon, Platform, Problem, StableId
from nova_mcp.memory.knowledge.page import KnowledgePage
from nova_mcp.memory.knowledge.writes.content_rules import (
    LiveLook,
    LiveVerdict,
    check_live,
    holds_script,
    holds_secret,
    selectors_of,
    surface_of,
)
from nova_mcp.memory.knowledge.writes.rules import Live

# Elements kept around everything that an entry acts on, so that repair can tell later what became of it.
MOST_AROUND: Final = 200


@dataclass(frozen=True, slots=True)
class PageCheck:
    """What a page showed of the selectors and signs of a write. `distrusted` pages were changed by an agent's script:
    what is found there confirms nothing. `looked` is False where there was no page at all."""

    now_ms: int
    looks: Mapping[str, LiveLook] = field(default_factory=dict)
    prints: Mapping[str, ElementPrint] = field(default_factory=dict)
    observed: tuple[ObservedSignal, ...] = ()
    around: tuple[ElementPrint, ...] = ()
    problems: tuple[Problem, ...] = ()
    vendors: tuple[str, ...] = ()
    distrusted: bool = False
    looked: bool = True

    def live(self, content: Content, before: Phenomenon | None) -> Live:
        """The verdict on content as it would be stored now; what was seen earlier and not asked for now stays seen."""
        found = check_live(content, self.looks)
        problems = (*self.problems, *found.problems)
        if self.distrusted:
            verdict = LiveVerdict(problems, selectors_of(content), self.looked, found.unread)
            return Live(verdict, frozenset(), self.now_ms)
        known = _confirmed(before)
        missing = tuple(one for one in found.unconfirmed if one in self.looks or one not in known)
        held = holding(content.fingerprint, self.observed)
        return Live(LiveVerdict(problems, missing, self.looked, found.unread), held, self.now_ms)

    def printed(self, content: Content, before: Phenomenon | None) -> Content:
        """Content with the looks of the elements it acts on: from this page, else from where they were seen before."""
        playbook = content.playbook
        if playbook is None:
            return content
        old = {} if before is None or before.content.playbook is None else _by_selector(before.content.playbook.actions)
        actions = tuple(
            replace(one, element=self._print(one) or old.get(one.selector or "")) for one in playbook.actions
        )
        return replace(content, playbook=replace(playbook, actions=actions))

    def _print(self, action: Action) -> ElementPrint | None:
        if self.distrusted:
            return None
        found = (self.prints.get(one) for one in (action.selector, *action.fallbacks) if one is not None)
        return next((one for one in found if one is not None), None)


def _by_selector(actions: Iterable[Action]) -> dict[str, ElementPrint]:
    return {one.selector or "": one.element for one in actions if one.element is not None}


def _confirmed(before: Phenomenon | None) -> frozenset[str]:
    """What need not be seen again; a retired entry has everything to prove."""
    if before is None or before.deprecated:
        return frozenset()
    return frozenset(selectors_of(before.content)).difference(before.unconfirmed)


async def check_page(
    page: KnowledgePage, content: Content, platforms: Iterable[Platform], now_ms: int, hides: Callable[[str], str] = str
) -> PageCheck:
    """Ask the open page about everything that an entry would look for or act on."""
    seen = await look_at(page, selectors_of(content), surface_of(content))
    draft = Phenomenon(StableId(""), content, 0, now_ms, now_ms)
    signs = await page.check_signals(wanted_of([draft], platforms))
    prints = {name: harmless(print_of(one.seen), hides) for name, one in seen.items() if one.seen is not None}
    acting = _acting(content, seen)
    around = await around_of(page, acting, hides) if acting else ()
    return PageCheck(
        now_ms=now_ms,
        looks=live_looks(seen),
        prints=prints,
        observed=observed_signals(signs),
        around=around,
        problems=invalid(seen.values()),
        vendors=signs.vendors,
        distrusted=page.agent_scripted,
    )


async def look_at(
    page: KnowledgePage, selectors: Sequence[str], surfaces: Sequence[str] = ()
) -> dict[str, SelectorSeen]:
    """However many there are: one question takes only so many."""
    most, seen = MAX_SELECTORS, dict[str, SelectorSeen]()
    for begin in range(0, len(selectors), most):
        seen |= await page.find_selectors(selectors[begin : begin + most], surfaces)
    return seen


def invalid(seen: Iterable[SelectorSeen]) -> tuple[Problem, ...]:
    """Selectors that no page can ever answer to."""
    return tuple(
        Problem("selector.invalid", f'"{one.selector[:80]}" is not a selector that a page understands.')
        for one in seen
        if one.invalid
    )


def _acting(content: Content, seen: Mapping[str, SelectorSeen]) -> tuple[ElementPrint, ...]:
    actions = () if content.playbook is None else content.playbook.actions
    wanted = (name for one in actions for name in (one.selector, *one.fallbacks) if name is not None)
    found = (seen[name].seen for name in dict.fromkeys(wanted) if name in seen)
    return tuple(print_of(one) for one in found if one is not None)


async def around_of(
    page: KnowledgePage, acting: Iterable[ElementPrint], hides: Callable[[str], str]
) -> tuple[ElementPrint, ...]:
    """What stands around elements, by which repair tells later what became of them."""
    prints = [print_of(one.seen) for one in await page.list_elements()]
    near = dict.fromkeys(one for other in acting for one in surroundings(prints, other))
    return tuple(harmless(one, hides) for one in list(near)[:MOST_AROUND])


def harmless(seen: ElementPrint, hides: Callable[[str], str] = str) -> ElementPrint:
    """A print without anything that nobody should keep: a page may show secrets, and may show script as text."""
    changes: dict[str, object] = {}
    for one in fields(seen):
        held = getattr(seen, one.name)
        if isinstance(held, str) and not _fine(held, hides):
            changes[one.name] = ""
        elif isinstance(held, tuple) and held and isinstance(held[0], str):
            changes[one.name] = tuple(text for text in held if _fine(text, hides))
    return replace(seen, **changes) if changes else seen  # type: ignore[arg-type]


def _fine(text: str, hides: Callable[[str], str]) -> bool:
    return not text or (hides(text) == text and not holds_script(text) and holds_secret(text) is None)
