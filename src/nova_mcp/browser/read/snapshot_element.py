"""One element of a perceived page in full: what it was, whether it is still there, and every way to name it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from nova_mcp.browser.act.locate import Locator, Target, aim
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.perceive.element_lines import is_fragile
from nova_mcp.browser.perceive.scan_values import Answer, Found, SeenElement
from nova_mcp.browser.read.snapshot_query import element_named
from nova_mcp.browser.read.snapshots import Snapshot
from nova_mcp.errors import NotFound, Precondition, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab


@dataclass(frozen=True, slots=True)
class Candidate:
    """A selector for the element; `unique` when it means that one alone."""

    selector: str
    kind: str
    unique: bool

    @property
    def fragile(self) -> bool:
        return is_fragile(Found(self.selector, self.kind))


@dataclass(frozen=True, slots=True)
class RefRead:
    """An element as it was perceived; `still_live` is None when the page can't be asked."""

    ref: str
    element: SeenElement
    candidates: tuple[Candidate, ...]
    still_live: bool | None


def attributes_of(element: SeenElement) -> dict[str, str]:
    facts = element.facts
    given = {"id": facts.id, "data-testid": facts.testid, "name": facts.name_attr, "type": facts.type}
    return {name: value for name, value in {**given, "href": facts.href_path}.items() if value}


async def read_ref(tab: "Tab", snapshot: Snapshot, ref: str) -> RefRead:
    element = element_named(snapshot, ref)
    if element is None:
        raise NotFound(
            "ref.stale", f"{ref} is not part of that snapshot.", "Use a ref that the snapshot's own answers gave."
        )
    found = snapshot.selectors.get(element.spot)
    known = () if found is None else (Candidate(found.selector, found.kind, unique=True),)
    try:
        async with tab.lock.shared():
            target = await aim(tab, Locator(ref=ref))
            return RefRead(ref, element, await _candidates(tab, target) or known, still_live=True)
    except (NotFound, Precondition):
        return RefRead(ref, element, known, still_live=False)
    except (Unavailable, DocumentChanged, PageScriptError):
        return RefRead(ref, element, known, still_live=None)


async def _candidates(tab: "Tab", target: Target) -> tuple[Candidate, ...]:
    told = await tab.channel.ask("candidates", {"node": target.node}, frame_id=target.frame_id)
    rows = cast(list[Answer], told if isinstance(told, list) else [])
    return tuple(Candidate(row["selector"], row["kind"], row["unique"]) for row in rows)
