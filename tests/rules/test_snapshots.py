"""How many looks are kept, for how long, and how much they may weigh."""

from nova_mcp.browser.perceive.elements import ElementFacts
from nova_mcp.browser.perceive.refs import Perception
from nova_mcp.browser.perceive.scan_values import Scan, SeenElement, SeenPage
from nova_mcp.browser.read.snapshots import KEPT_BYTES, KEPT_MS, KEPT_PER_TAB, SnapshotShelf

PAGE = SeenPage("http://127.0.0.1/", "http://127.0.0.1", "t", "complete", "", (1, 1), 0, 0)


def scan(count: int) -> Scan:
    facts = ElementFacts("button", "button", "n" * 100)
    return Scan(PAGE, (SeenElement(1, facts),) * count, count, False, {}, (), (), (), 0)


def look(perception: Perception, count: int = 1, at: int = 0) -> None:
    perception.note("tab_1", scan(count), 1, at)


def test_a_tab_keeps_its_last_twenty_looks():
    perception = Perception()
    for number in range(KEPT_PER_TAB + 5):
        look(perception, at=number)
    assert [kept.taken_ms for kept in perception.snapshots] == list(range(5, KEPT_PER_TAB + 5))


def test_looks_older_than_ten_minutes_go():
    perception = Perception()
    look(perception, at=0)
    look(perception, at=1)
    look(perception, at=KEPT_MS + 1)
    assert [kept.taken_ms for kept in perception.snapshots] == [1, KEPT_MS + 1]


def test_all_tabs_together_stay_within_the_weight_and_the_newest_look_always_stays():
    shelf = SnapshotShelf()
    tabs = [Perception(shelf) for _ in range(20)]
    for number in range(2):
        for tab in tabs:
            look(tab, 5000, number)
            assert shelf.total_bytes <= KEPT_BYTES
            assert tab.snapshots[-1].taken_ms == number
    assert 0 < len(shelf) < 20


def test_a_closed_tab_leaves_nothing_behind():
    shelf = SnapshotShelf()
    one, other = Perception(shelf), Perception(shelf)
    look(one)
    look(other)
    one.close()
    assert (len(one.snapshots), len(other.snapshots), len(shelf)) == (0, 1, 1)
    other.close()
    assert shelf.total_bytes == 0
