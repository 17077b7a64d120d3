"""The keeper of live facts: where a page stands, what a caller was told, and what an operator's demand sees."""

from dataclasses import dataclass, field

import pytest
from sqlalchemy import update

from nova_mcp.core.connections import AgentConnections
from nova_mcp.evidence.model import CallOutcome
from nova_mcp.memory.facts.model import FRESH_MS
from nova_mcp.memory.facts.policies import Policy
from nova_mcp.memory.facts.service import Claim, FactKeeper
from nova_mcp.memory.facts.tables import fact
from nova_mcp.storage.errors import StoreUnavailable

NOW = 1_800_000_000_000


@dataclass
class Clock:
    now: int = NOW

    def now_ms(self):
        return self.now

    def monotonic_ms(self):
        return float(self.now)


@dataclass
class Tab:
    url: str = "https://shop.test/cart"
    target_id: str = "tab_1"
    sandbox_id: str = "A"
    principal: str = "local"


@dataclass
class Ended:
    """All that a note asks of a call's record."""

    kind: str = "ok"
    outcome: CallOutcome = field(init=False)

    def __post_init__(self):
        self.outcome = CallOutcome(self.kind)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keeper(db, clock):
    return FactKeeper(db, clock)


@pytest.fixture
def connections(clock):
    return AgentConnections(clock)


@pytest.fixture
def ada(connections):
    return connections.of(("local", "ada"))


@pytest.fixture
def bob(connections):
    return connections.of(("local", "bob"))


def report(db, keeper, *claims, tab=None, call="c1"):
    place = keeper.place(tab or Tab())
    return db.write_sync(keeper.note, place, keeper.observations(place, claims, call))


BOTH = Claim("core.login_state", "logged_in"), Claim("core.page.type", "cart")


async def test_a_hint_counts_as_told_only_once_it_was(db, keeper, ada, bob):
    report(db, keeper, BOTH[0])
    place = keeper.place(Tab())
    first, lost = await keeper.advice(place, ada), await keeper.advice(place, ada)
    assert (first.unchanged, lost.unchanged) == (False, False)
    keeper.told(lost)
    assert (await keeper.advice(place, ada)).unchanged
    assert not (await keeper.advice(place, bob)).unchanged
    assert not (await keeper.advice(keeper.place(Tab("https://shop.test/other")), ada)).unchanged


async def test_a_hint_that_comes_back_after_all_was_well_is_told_in_full(db, keeper, clock, ada):
    place = keeper.place(Tab())
    keeper.told(await keeper.advice(place, ada))
    report(db, keeper, *BOTH)
    well = await keeper.advice(place, ada)
    assert (well.hint, well.unchanged, set(well.facts)) == (None, False, {"core.login_state", "core.page.type"})
    keeper.told(well)
    clock.now += FRESH_MS + 1
    old = await keeper.advice(place, ada)
    assert (old.hint.keys, old.unchanged) == (("core.login_state", "core.page.type"), False)


@pytest.mark.parametrize(("kind", "kept"), [("failed", set()), ("ok", {"core.login_state"})])
async def test_what_nova_saw_in_a_call_that_came_to_nothing_is_not_kept(db, keeper, kind, kept):
    place = keeper.place(Tab())
    db.write_sync(keeper.seen(place, {"core.login_state": "logged_in"}, "c1"), Ended(kind), None)
    assert set((await keeper.known(place)).facts) == kept


@pytest.mark.parametrize("tail", ["?q=" + "a" * 3_000, "/" + "b" * 3_000, "?q=" + "a" * 70_000, "#/" + "c" * 3_000])
async def test_a_page_with_a_very_long_address_is_a_page_all_the_same(db, keeper, tail, ada):
    there, elsewhere = Tab("https://shop.test/find" + tail), Tab("https://shop.test/find" + tail + "x")
    place = keeper.place(there)
    assert (place.service.key, place.page.url_hash != keeper.place(elsewhere).page.url_hash) == ("shop.test", True)
    assert place.page.url.startswith("https://shop.test/")
    assert len(place.page.url) < 2_048
    report(db, keeper, *BOTH, tab=there)
    assert (await keeper.advice(place, ada)).hint is None
    assert (await keeper.advice(keeper.place(elsewhere), ada)).hint.url_changed


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("https://münchen.de/", "xn--mnchen-3ya.de"),
        ("https://xn--mnchen-3ya.de/", "xn--mnchen-3ya.de"),
        ("https://shop.test./cart", "shop.test"),
        ("https://ada:pw@shop.test/cart", "shop.test"),
        ("https://SHOP.test:8443/cart", "shop.test:8443"),
    ],
)
def test_one_service_has_one_key_however_it_is_spelt(keeper, url, service):
    place = keeper.place(Tab(url))
    assert (place.service.key, place.scope.binding_id) == (service, f"tab_1/{service}")
    assert "pw" not in place.page.url


@pytest.mark.parametrize(
    "url", ["", "about:blank", "file:///etc/hosts", "data:text/html,x", "blob:https://shop.test/1"]
)
def test_outside_the_web_there_is_no_place(keeper, url):
    assert keeper.place(Tab(url)) is None


async def test_facts_stay_with_their_tab_and_service_and_wait_for_the_way_back(db, keeper):
    report(db, keeper, *BOTH)
    for other in (Tab(target_id="tab_2"), Tab("https://else.test/"), Tab("https://shop.test:8443/cart")):
        assert (await keeper.known(keeper.place(other))).facts == {}
    assert set((await keeper.known(keeper.place(Tab()))).facts) == {"core.login_state", "core.page.type"}


async def test_a_clock_set_back_makes_facts_old_and_never_younger_than_now(db, keeper, clock, ada):
    report(db, keeper, *BOTH)
    clock.now -= FRESH_MS + 1
    told = (await keeper.advice(keeper.place(Tab()), ada)).hint
    assert (told.keys, told.oldest_ago_ms) == (("core.login_state", "core.page.type"), 0)
    (new,) = report(db, keeper, Claim("core.login_state", "logged_out"), call="c2")
    assert (new.state, new.superseded) == ("fresh", True)


DEMAND = Policy(service="shop.test", tools=("act",), needs="is_authenticated")


async def test_a_demand_looks_at_the_facts_of_that_tab_and_gives_way_when_they_cannot_be_read(db, clock, monkeypatch):
    keeper = FactKeeper(db, clock, policies=[DEMAND])
    place = keeper.place(Tab())
    assert (await keeper.lacking("act", place)).capability == "is_authenticated"
    assert await keeper.lacking("read", place) is None
    assert await keeper.lacking("act", None) is None
    report(db, keeper, *BOTH)
    assert await keeper.lacking("act", place) is None
    assert (await keeper.lacking("act", keeper.place(Tab(target_id="tab_2")))).decision == "block"
    clock.now += FRESH_MS + 1
    assert await keeper.lacking("act", place) is not None

    db.write_sync(lambda conn: conn.execute(update(fact).values(value="{", last_observed_at_ms=clock.now)))
    assert await keeper.lacking("act", place) is None

    async def broken(*_):
        raise StoreUnavailable("down")

    monkeypatch.setattr(db, "read", broken)
    assert await keeper.lacking("act", place) is None
