"""What of a page is worth showing when there is no room for all of it: scores, shares of a budget, what is blocked."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nova_mcp.browser.perceive.scan_values import SeenElement
from nova_mcp.core.tokens import estimate_tokens


class Placement(NamedTuple):
    """Where an element stands on the page, as far as its rank depends on it."""

    in_dialog: bool = False
    in_viewport: bool = False
    in_main: bool = False
    form_control: bool = False
    primary_button: bool = False
    stable_selector: bool = False
    named: bool = False
    in_nav: bool = False
    repeated: bool = False
    far_away: bool = False
    disabled: bool = False


# In the order of the fields above.
_WEIGHTS: Final = (40, 25, 20, 15, 15, 10, 5, -15, -10, -20, -30)


# Of the few thousand placements there can be, a page shows a dozen.
@functools.cache
def score(placement: Placement) -> int:
    """The rank of an element in a list that has no room for all."""
    return sum(weight for weight, holds in zip(_WEIGHTS, placement, strict=True) if holds)


def in_viewport(box: tuple[int, int, int, int], viewport: tuple[int, int]) -> bool:
    left, top, width, height = box
    return left < viewport[0] and top < viewport[1] and left + width > 0 and top + height > 0


def is_on_screen(element: SeenElement, viewport: tuple[int, int]) -> bool:
    """Inside the window, and not scrolled out of the frame it stands in."""
    return not element.clipped and in_viewport(element.box, viewport)


def is_far_away(box: tuple[int, int, int, int], viewport: tuple[int, int]) -> bool:
    """More than two viewports above or below what is seen."""
    _, top, _, height = box
    return top - viewport[1] > 2 * viewport[1] or -(top + height) > 2 * viewport[1]


def placements(elements: Iterable[SeenElement], viewport: tuple[int, int]) -> list[Placement]:
    """The placement of each element, in document order; the second of a name counts as repeated."""
    seen: set[tuple[str, str]] = set()
    placed = []
    for element in elements:
        role, name = key = element.facts.role, element.facts.name
        placed.append(
            Placement(
                element.in_dialog,
                is_on_screen(element, viewport),
                element.in_main,
                element.is_control,
                element.is_primary and role == "button",
                element.is_unique,
                name != "",
                element.in_nav,
                key in seen,
                is_far_away(element.box, viewport),
                "disabled" in element.flags,
            )
        )
        seen.add(key)
    return placed


def by_score(elements: Sequence[SeenElement], viewport: tuple[int, int]) -> list[SeenElement]:
    """Best first; equals stay in document order."""
    scores = [score(placement) for placement in placements(elements, viewport)]
    # Descending order leaves equals as they were.
    return [elements[index] for index in sorted(range(len(elements)), key=scores.__getitem__, reverse=True)]


# -- budgets


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that share a part of the budget."""

    name: str
    share: float
    lines: tuple[str, ...]


def line_cost(line: str) -> int:
    # One for the line break, and one because estimates of short texts round down.
    return estimate_tokens(line) + 2


def pack(groups: Sequence[Group], budget: int) -> dict[str, tuple[str, ...]]:
    """What of each group fits: its share first, then what others left over, in the order of the groups."""
    costs: dict[tuple[str, int], int] = {}
    taken = {group.name: 0 for group in groups}
    left = budget
    carried = 0.0

    def cost_of(group: Group, index: int) -> int:
        known = costs.get((group.name, index))
        if known is None:
            known = costs[(group.name, index)] = line_cost(group.lines[index])
        return known

    def take(group: Group, allowance: float) -> float:
        nonlocal left
        spent = 0.0
        for index in range(taken[group.name], len(group.lines)):
            cost = cost_of(group, index)
            if spent + cost > allowance or cost > left:
                break
            spent += cost
            left -= cost
            taken[group.name] += 1
        return spent

    for group in groups:
        allowance = group.share * budget + carried
        carried = allowance - take(group, allowance)
    for group in groups:
        take(group, left)
    return {group.name: group.lines[: taken[group.name]] for group in groups}


def longest_that_fits(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number of items that still fits, by halving; fitting is monotone."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
