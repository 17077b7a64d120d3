"""What counts in Learn Mode: distinct surfaces and interactions, capped; repeating changes nothing, nothing is lost."""

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.core.urls import normalize_url, route_key
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId, Signals, Touched
from nova_mcp.evidence.page_sights import Sight
from nova_mcp.memory.tasks.instructions.learn_rules import (
    Counted,
    Floors,
    Progress,
    after,
    countables,
    learn_domain,
    learn_progress,
    may_count,
    outcome_of,
)

DOMAIN = "shop.test"
ADA = Caller("local", "ada", ServerId("s"))
CONTENT = frozenset({"content_exposed"})
BROKEN = Sight("https://shop.test/", "0" * 16, "0" * 16, http_status=500, error_page=True)


def page(url: str) -> PageState:
    normal = normalize_url(url)
    return PageState("tab_1", "A", normal, route_key(normal) if normal else None, 1)


def look(url: str, tool: str = "perceive", **changes: Any) -> CallRecord:
    here = page(url)
    record = CallRecord("c", ADA, f"nova.{tool}", "read", 1, 1, CallOutcome("ok"), before=here, after=here)
    return replace(record, touched=Touched(flags=CONTENT), **changes)


def act(url: str, control: str | None = "#go", tool: str = "click_selector", **signals: Any) -> CallRecord:
    here = page(url)
    return CallRecord(
        "c",
        ADA,
        f"nova.{tool}",
        "act",
        1,
        1,
        CallOutcome("ok", action_dispatched=True),
        before=here,
        after=here,
        touched=Touched(selector_hash=control),
        signals=Signals(**{"page_changed": True, **signals}),
    )


def seen(*records: CallRecord) -> tuple[int, int]:
    progress = learn_progress(records, DOMAIN)
    return progress.surfaces, progress.interactions


# -- surfaces


def test_a_surface_is_a_route_not_an_address() -> None:
    assert seen(
        look("https://shop.test/item/17"), look("https://shop.test/item/18?ref=a"), look("https://shop.test/")
    ) == (
        2,
        0,
    )


@pytest.mark.parametrize("host", ["www.shop.test", "shop.test.", "SHOP.test:443", "www.www.shop.test."])
def test_another_spelling_of_a_host_makes_no_new_surface_and_no_new_interaction(host: str) -> None:
    plain, spelled = "https://shop.test/a/b-c", f"https://{host}/a/b-c"
    assert seen(look(plain), look(spelled), act(plain), act(spelled)) == (1, 1)
    dialogs = Signals(dialogs=("Menu",))
    assert seen(look(plain, signals=dialogs), look(spelled, signals=dialogs)) == (2, 0)
    titles = [f"https://{one}/blog/title-{number}" for one in ("shop.test", host) for number in "abc"]
    assert seen(*map(look, titles)) == (2, 0)


def test_another_port_is_another_place() -> None:
    assert seen(look("http://shop.test:8080/a"), look("http://shop.test/a")) == (2, 0)
    assert seen(look("http://shop.test:8080/a"), look("http://www.shop.test.:8080/a")) == (1, 0)


def test_hosts_below_the_site_count_each_and_others_never() -> None:
    calls = [look("https://a.shop.test/"), look("https://b.shop.test/"), look("https://other.test/x")]
    assert seen(*calls) == (2, 0)
    assert seen(look("https://evilshop.test/"), look("https://shop.test.evil.test/")) == (0, 0)


@pytest.mark.parametrize("mark", ["#/", "#!/"])
def test_hash_routes_are_surfaces(mark: str) -> None:
    assert seen(*(look(f"https://shop.test/{mark}{part}") for part in ("cart", "search", "cart"))) == (2, 0)
    assert seen(look("https://shop.test/#top"), look("https://shop.test/#end")) == (1, 0)


def test_titles_below_the_first_level_count_twice_per_parent() -> None:
    posts = [look(f"https://shop.test/blog/post-number-{name}") for name in ("one", "two", "three", "four")]
    assert seen(*posts) == (2, 0)
    assert seen(*posts, look("https://shop.test/news/a-title"), look("https://shop.test/blog")) == (4, 0)
    assert seen(*(look(f"https://shop.test/{name}") for name in ("about-us", "our-team", "contact-us"))) == (3, 0)
    routes = [look(f"https://shop.test/app#/blog/post-number-{name}") for name in ("one", "two", "three")]
    assert seen(*routes) == (2, 0)


def test_open_dialogs_add_three_per_route_at_most() -> None:
    def with_dialogs(url: str, *names: str) -> CallRecord:
        return look(url, signals=Signals(dialogs=names))

    assert seen(with_dialogs("https://shop.test/", "a")) == (2, 0)
    assert seen(with_dialogs("https://shop.test/", "a", "b", "c", "d", "e")) == (4, 0)
    assert seen(with_dialogs("https://shop.test/", "a"), with_dialogs("https://shop.test/cart", "a")) == (4, 0)


def test_a_dialog_over_a_surface_that_does_not_count_adds_nothing() -> None:
    posts = [
        look(f"https://shop.test/blog/post-number-{name}", signals=Signals(dialogs=("letter",)))
        for name in ("one", "two", "three")
    ]
    assert seen(*posts) == (4, 0)


@pytest.mark.parametrize("tool", ["perceive", "read_text", "extract_table", "coverage_scan", "search_text"])
def test_reads_count_by_what_they_showed(tool: str) -> None:
    assert seen(look("https://shop.test/", tool)) == (1, 0)
    assert seen(look("https://shop.test/", tool, signals=Signals(sight=BROKEN))) == (0, 0)
    for kind in ("failed", "partial", "blocked_preflight", "invalid"):
        assert seen(replace(look("https://shop.test/", tool), outcome=CallOutcome(kind))) == (0, 0)  # type: ignore[arg-type]


def test_a_glance_and_a_search_without_a_hit_are_no_reads() -> None:
    assert seen(look("https://shop.test/", arguments={"mode": "state"})) == (0, 0)
    assert seen(look("https://shop.test/", arguments={"mode": "full"})) == (1, 0)
    assert seen(replace(look("https://shop.test/", "search_text"), touched=Touched())) == (0, 0)


@pytest.mark.parametrize(
    "tool", ["navigate", "capture_screenshot", "perceive_snapshot_query", "eval", "page_info", "scroll_smart", "hover"]
)
def test_other_calls_make_no_surface(tool: str) -> None:
    record = look("https://shop.test/", tool)
    assert (seen(record), may_count(record)) == ((0, 0), False)


# -- interactions


@pytest.mark.parametrize(
    "tool", ["click_selector", "type_selector", "choose_option", "input_key", "dismiss_blockers", "file_upload"]
)
def test_an_interaction_needs_an_effect_that_was_seen(tool: str) -> None:
    assert seen(act("https://shop.test/", tool=tool)) == (0, 1)
    assert seen(act("https://shop.test/", tool=tool, page_changed=False, effect_observed=True)) == (0, 0)
    done = act("https://shop.test/", tool=tool)
    assert seen(replace(done, outcome=CallOutcome("ok", action_dispatched=False))) == (0, 0)
    assert seen(replace(done, outcome=CallOutcome("partial", action_dispatched=True))) == (0, 0)


def test_an_error_page_is_no_surface_to_interact_with() -> None:
    assert seen(act("https://shop.test/", sight=BROKEN)) == (0, 0)
    # What leads to an error page was done on a page that is none.
    assert seen(act("https://shop.test/", sight=replace(BROKEN, steady=False))) == (0, 1)


def test_interactions_differ_by_surface_control_and_tool() -> None:
    first = act("https://shop.test/a")
    assert seen(first, first, act("https://shop.test/a", "#stop"), act("https://shop.test/b")) == (0, 3)
    assert seen(first, act("https://shop.test/a", tool="choose_option")) == (0, 2)


def test_a_control_without_a_selector_is_known_by_its_looks() -> None:
    bare = act("https://shop.test/a", None)
    one, other = (replace(bare, touched=Touched(fingerprint_id=name)) for name in ("x", "y"))
    assert seen(one, other, one) == (0, 2)


@pytest.mark.parametrize("tool", ["guarded_submit_form", "guarded_login", "guarded_send_message"])
def test_guarded_calls_count_by_their_verdict(tool: str) -> None:
    for verdict, counted in [("verified_success", 1), ("verified_fail", 1), ("indeterminate", 0), (None, 0)]:
        assert seen(act("https://shop.test/", tool=tool, contract=verdict)) == (0, counted)


@pytest.mark.parametrize("tool", ["navigate", "scroll_smart", "hover", "eval", "run_sequence", "type_selector_secret"])
def test_what_is_no_interaction_never_counts(tool: str) -> None:
    assert seen(act("https://shop.test/", tool=tool)) == (0, 0)


def test_intents_and_recoveries_count_nothing() -> None:
    for kind in ("intent", "recovery"):
        assert seen(replace(act("https://shop.test/"), kind=kind), replace(look("https://shop.test/"), kind=kind)) == (
            0,
            0,
        )


# -- the whole


PATHS = ["/", "/cart", "/blog/a-post", "/blog/b-post", "/blog/c-post", "/item/1", "/item/2", "/#/x", "/2024/about-us"]
HOSTS = ["shop.test", "www.shop.test", "eu.shop.test", "other.test"]
urls = st.builds(lambda host, path: f"https://{host}{path}", st.sampled_from(HOSTS), st.sampled_from(PATHS))
dialogs = st.lists(st.sampled_from("abcde"), max_size=4).map(tuple)
looks = st.builds(
    lambda url, names, broken: look(url, signals=Signals(dialogs=names, sight=BROKEN if broken else None)),
    urls,
    dialogs,
    st.booleans(),
)
acts = st.builds(
    lambda url, control, tool: act(url, control, tool),
    urls,
    st.sampled_from(["#a", "#b", None]),
    st.sampled_from(["click_selector", "choose_option", "navigate"]),
)
calls = st.lists(st.one_of(looks, acts), max_size=25)


@given(calls)
def test_progress_never_falls_as_the_ledger_grows(records: list[CallRecord]) -> None:
    steps = [learn_progress(records[:end], DOMAIN) for end in range(len(records) + 1)]
    pairs = list(pairwise(steps))
    assert all(a.surfaces <= b.surfaces and a.interactions <= b.interactions for a, b in pairs)


@given(calls, st.data())
def test_repeating_a_counted_call_changes_no_counter(records: list[CallRecord], data: st.DataObject) -> None:
    whole = learn_progress(records, DOMAIN)
    if records:
        again = data.draw(st.sampled_from(records))
        assert learn_progress([*records, again], DOMAIN) == whole


@given(calls)
def test_every_count_keeps_to_its_cap(records: list[CallRecord]) -> None:
    *_, counted = accumulate(records, lambda held, one: after(held, one, DOMAIN), initial=Counted())
    for one in counted.items:
        if one.group is not None and one.cap is not None:
            assert counted.in_group(one.kind, one.group) <= one.cap
    assert counted.progress == learn_progress(records, DOMAIN)


@given(calls)
def test_calls_elsewhere_never_count(records: list[CallRecord]) -> None:
    here = [one for one in records if learn_domain(one.before.url, ()) == DOMAIN]
    assert learn_progress(records, DOMAIN) == learn_progress(here, DOMAIN)
    assert all(may_count(one) for one in records if [*countables(one, DOMAIN, ())])


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("https://www.shop.test/a", "shop.test"),
        ("http://a.b.co.uk:8080/", "b.co.uk"),
        ("http://127.0.0.1:9/", "127.0.0.1"),
        ("localhost", "localhost"),
        ("about:blank", None),
        (None, None),
    ],
)
def test_the_learn_domain_is_the_registrable_one(host: str | None, domain: str | None) -> None:
    assert learn_domain(host, ()) == domain


def test_tenants_of_one_domain_are_sites_of_their_own() -> None:
    assert learn_domain("https://acme.slack.com/", {"slack.com"}) == "acme.slack.com"


def test_a_visit_ends_by_what_it_reached() -> None:
    floors = Floors(2, 1)
    assert outcome_of(Progress(2, 1), floors, None) == "complete"
    assert outcome_of(Progress(5, 5), floors, "nothing more to be found") == "complete"
    assert outcome_of(Progress(1, 1), floors, "nothing more to be found") == "exhausted"
    assert outcome_of(Progress(2, 0), floors, None) == "incomplete"
