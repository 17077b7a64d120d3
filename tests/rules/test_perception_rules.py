"""Answers about a page as pure functions: budgets, order, changes, frames, forms."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova_mcp.browser.commits.check import commit_facts, previewed
from nova_mcp.browser.commits.commit_points import classify_commit_point
from nova_mcp.browser.perceive.composition import View, compose, compose_delta, layer_elements, rank, within
from nova_mcp.browser.perceive.delta import Delta, applied, changes, difference, element_states, repeated_keys
from nova_mcp.browser.perceive.elements import ElementFacts
from nova_mcp.browser.perceive.form_analysis import ControlDetails, compose_forms, fields_of, preferred_tool
from nova_mcp.browser.perceive.pagination import more_by
from nova_mcp.browser.perceive.refs import Perception
from nova_mcp.browser.perceive.report import PerceiveReport, ResolvedRef
from nova_mcp.browser.perceive.scan_values import (
    AuthSurface,
    Found,
    Scan,
    SeenBlocker,
    SeenElement,
    SeenField,
    SeenForm,
    SeenFrame,
    SeenHeading,
    SeenLandmark,
    SeenLayer,
    SeenPage,
)
from nova_mcp.browser.perceive.scans import COLUMNS, read_scan

URL = "http://127.0.0.1/a"
PAGE = SeenPage(URL, "http://127.0.0.1", "Garden", "complete", "en", (1280, 800), 0, 0)
LIST_MODES = ("summary", "ctas", "modals", "full")


def element(node=1, role="button", name="Save", **more):
    facts = {key: more.pop(key) for key in ("tag", "type", "id", "row_key", "frame", "href_path") if key in more}
    return SeenElement(node, ElementFacts(**{"tag": "button", "role": role, "name": name, **facts}), **more)


def scan_of(*elements, **more):
    parts = {"total": len(elements), "truncated": False, "forms": {}, "headings": (), "landmarks": (), "layers": ()}
    return Scan(page=more.pop("page", PAGE), elements=tuple(elements), closed_roots=0, **{**parts, **more})


def view_of(scan, mode="summary", max_tokens=1200, perception=None, **more):
    perception = perception or Perception()
    ranking = rank(scan, mode, max_tokens)
    snapshot = perception.note("tab_1", scan, 1, 0)
    named = [*layer_elements(scan), *ranking.elements, *(fields_of(scan.elements) if mode == "form_analysis" else ())]
    selectors = {one.spot: Found(f"#n{one.node}", "id") for one in named}
    return View("tab_1", snapshot, ranking, perception.name(snapshot, named, selectors), selectors, **more)


# -- made-up looks

TEXTS = st.text(max_size=130) | st.sampled_from(["日本語の名前" * 20, "Überschrift " * 9, "a" * 200, "Delete account"])
ELEMENTS = st.builds(
    SeenElement,
    node=st.just(0),
    facts=st.builds(
        ElementFacts,
        tag=st.sampled_from(["button", "a", "input"]),
        role=st.sampled_from(["button", "link", "textbox", "combobox"]),
        name=TEXTS,
        type=st.sampled_from(["", "submit", "text"]),
        frame=st.sampled_from(["", "", "2F67B7291D07CCF2A30716F9F9C05F86"]),
    ),
    value=TEXTS,
    flags=st.sampled_from([(), ("disabled",), ("required", "invalid", "newtab")]),
    box=st.tuples(st.integers(-9000, 9000), st.integers(-9000, 9000), st.integers(0, 500), st.integers(0, 500)),
    in_dialog=st.booleans(),
    behind=st.booleans(),
    is_control=st.booleans(),
    submits=st.booleans(),
    form=st.sampled_from([0, 7]),
)
PAGES = st.builds(
    SeenPage,
    url=TEXTS.map(lambda text: f"http://127.0.0.1/{text}"),
    origin=st.just("http://127.0.0.1"),
    title=TEXTS,
    ready_state=st.sampled_from(["complete", "interactive"]),
    lang=st.just("en"),
    viewport=st.just((1280, 800)),
    above_px=st.just(0),
    below_px=st.integers(0, 9000),
)
AUTH = st.none() | st.just(AuthSurface("login_wall", False, True, None, True))
RECT = (0, 0, 300, 250)


@st.composite
def scans(draw):
    found = draw(st.lists(ELEMENTS, max_size=25))
    elements = tuple(replace(one, node=index + 1) for index, one in enumerate(found))
    blockers = tuple(
        SeenBlocker(
            "newsletter", draw(st.none() | st.booleans()), draw(TEXTS), element(900 + i), {"close": element(950 + i)}
        )
        for i in range(draw(st.integers(0, 5)))
    )
    form = SeenForm(7, True, False, "post", "/go", draw(TEXTS), (SeenField("input", "text", "a", "b", ""),))
    return scan_of(
        *elements,
        page=draw(PAGES),
        total=draw(st.integers(0, 10**6)),
        truncated=draw(st.booleans()),
        forms={("", 7): form, ("2F67B7291D07CCF2A30716F9F9C05F86", 7): form},
        headings=tuple(SeenHeading(2, text) for text in draw(st.lists(TEXTS, max_size=8))),
        landmarks=tuple(SeenLandmark("region", text) for text in draw(st.lists(TEXTS, max_size=8))),
        layers=tuple(SeenLayer(1, "dialog", text, True) for text in draw(st.lists(TEXTS, max_size=5))),
        frames=tuple(
            SeenFrame(f"{i:032X}", f"https://{i}.example", RECT, False, False) for i in range(draw(st.integers(0, 20)))
        ),
        blockers=blockers,
        auth=draw(AUTH),
    )


RESOLVED = st.lists(
    st.builds(ResolvedRef, ref=st.integers(1, 9_999_999).map(lambda n: f"e{n}"), live=st.booleans(), line=TEXTS),
    max_size=20,
).map(tuple)


@settings(max_examples=60, deadline=None)
@given(scans(), st.integers(150, 1500), st.sampled_from(LIST_MODES), RESOLVED)
def test_max_tokens_holds_for_every_page_and_mode(scan, max_tokens, mode, resolved):
    report = compose(view_of(scan, mode, max_tokens, resolved=resolved), mode, max_tokens)
    assert report.est_tokens <= max_tokens
    assert len(report.blockers) == len(scan.blockers)
    assert len(report.commit_points) == min(8, report.commit_point_total)
    assert (report.auth is None) is (scan.auth is None)
    assert report.completeness.shown == len(report.elements)


@settings(max_examples=40, deadline=None)
@given(scans(), st.integers(150, 1500))
def test_max_tokens_holds_for_forms_and_shows_them_in_order(scan, max_tokens):
    view = view_of(scan, "form_analysis", max_tokens)
    details = {one.spot: ControlDetails("name", ("日本" * 20,) * 20) for one in fields_of(scan.elements)}
    report = compose_forms(view, details, max_tokens)
    assert report.est_tokens <= max_tokens
    shown = [control.ref for form in report.forms for control in form.controls]
    wanted = [view.names[one.spot] for one in fields_of(scan.elements)]
    assert set(shown) == set(wanted[: len(shown)])
    assert all(len(control.options) <= 20 for form in report.forms for control in form.controls)


@settings(max_examples=40, deadline=None)
@given(scans(), scans(), st.integers(150, 1500))
def test_max_tokens_holds_for_what_changed(before, after, max_tokens):
    perception = Perception()
    old = view_of(before, perception=perception).snapshot
    view = view_of(after, "summary", max_tokens, perception)
    changed = changes(old, view.snapshot)
    report = compose_delta(view, old, changed, "summary", max_tokens)
    assert report.est_tokens <= max_tokens
    assert report.completeness.total == changed.total


@settings(max_examples=40, deadline=None)
@given(scans(), RESOLVED)
def test_a_glance_stays_within_250_tokens(scan, resolved):
    report = PerceiveReport(
        perception_id="",
        target_id="tab_1",
        rev=1,
        page_epoch=1,
        page=scan.page,
        url=scan.page.url[:300],
        title=scan.page.title[:120],
        mode="state",
        max_tokens=250,
        dialogs=tuple(f'dialog "{"n" * 60}" modal' for _ in scan.layers),
        auth=scan.auth,
        active_element=f'e1 textbox "{"長" * 60}" ="{"長" * 30}" {"#a" * 40}',
        resolved=resolved,
    )
    assert within(report, share=1).est_tokens <= 250


@settings(max_examples=40, deadline=None)
@given(scans(), st.sampled_from(LIST_MODES))
def test_br31_the_same_snapshot_gives_the_same_lines_order_and_refs(scan, mode):
    perception = Perception()
    first = compose(view_of(scan, mode, 600, perception), mode, 600)
    again = compose(view_of(scan, mode, 600, perception), mode, 600)
    elsewhere = compose(view_of(scan, mode, 600), mode, 600)
    assert first.text() == elsewhere.text()
    assert (first.elements, first.rev, first.text()) == (again.elements, again.rev, again.text())


LISTS = st.dictionaries(st.integers(0, 20), st.text(max_size=3), max_size=15)


@given(LISTS, LISTS)
def test_br31_a_delta_applied_to_the_old_list_gives_the_new_list(old, new):
    delta = difference(old, new)
    assert applied(old, delta) == new
    assert not set(delta.added) & set(old)
    assert difference(new, new) == Delta({}, {}, ())


@settings(max_examples=60, deadline=None)
@given(scans(), scans())
def test_br31_the_changes_between_two_looks_lead_from_the_first_to_the_second(before, after):
    perception = Perception()
    old, new = (perception.note("tab_1", scan, 1, 0) for scan in (before, after))
    repeated = repeated_keys(old, new)
    first, second = ({key: state for key, (state, _) in element_states(one, repeated).items()} for one in (old, new))
    assert applied(first, difference(first, second)) == second
    changed = changes(old, new)
    assert len(first) - len(changed.removed) + len(changed.added) == len(second)
    assert changes(new, new).total == 0


def test_a_change_of_state_is_a_change_and_a_new_node_of_the_same_looks_is_none():
    perception = Perception()
    old = perception.note("tab_1", scan_of(element(1), element(2, name="Open")), 1, 0)
    ticked = replace(element(2, name="Open"), flags=("checked",))
    new = perception.note("tab_1", scan_of(element(9), ticked, element(3, name="Fresh")), 1, 0)
    changed = changes(old, new)
    assert [one.node for one in changed.changed] == [2]
    assert [one.node for one in changed.added] == [3]
    assert changed.removed == ()


def test_a_delta_names_what_is_gone_by_the_ref_it_had():
    perception = Perception()
    old = view_of(scan_of(element(1), element(2, name="Open")), perception=perception).snapshot
    view = view_of(scan_of(element(2, name="Open")), perception=perception)
    report = compose_delta(view, old, changes(old, view.snapshot), "summary", 400)
    assert report.delta.removed == ('e1 button "Save"',)
    assert '- e1 button "Save"' in report.text().split("\n")
    still = compose_delta(view, view.snapshot, changes(view.snapshot, view.snapshot), "summary", 400)
    assert "no element changed" in still.text()


# -- order, shares, modes


def test_commit_points_come_first_and_what_lies_behind_a_modal_is_only_counted():
    hidden = replace(element(3, name="Behind"), behind=True)
    scan = scan_of(element(1, name="Look"), element(2, name="Delete account"), hidden)
    report = compose(view_of(scan), "summary", 600)
    assert [one.line for one in report.elements] == [
        'e1 button "Delete account" #n2 [commit offscreen]',
        'e2 button "Look" #n1 [offscreen]',
    ]
    assert report.behind_modal == 1


def test_modes_show_what_they_are_for():
    scan = scan_of(
        element(1, name="Look"),
        element(2, "textbox", "Mail", tag="input", is_control=True),
        element(3, name="Close", in_dialog=True),
        headings=(SeenHeading(1, "Title"),),
    )
    shown = {mode: compose(view_of(scan, mode), mode, 600) for mode in LIST_MODES}
    names = {mode: {line.line.split('"')[1] for line in report.elements} for mode, report in shown.items()}
    assert names == {
        "summary": {"Look", "Mail", "Close"},
        "ctas": {"Look", "Close"},
        "modals": {"Close"},
        "full": {"Look", "Mail", "Close"},
    }
    assert [line.line.split('"')[1] for line in shown["full"].elements] == ["Look", "Mail", "Close"]
    assert shown["summary"].headings == ('h1 "Title"',)
    assert shown["ctas"].headings == ()


def test_the_address_and_title_give_way_before_anything_that_can_be_acted_on():
    page = replace(PAGE, url="http://127.0.0.1/" + "x" * 400, title="標題" * 150)
    report = compose(view_of(scan_of(element(), page=page), max_tokens=200), "summary", 200)
    assert (len(report.url), len(report.title)) == (300, 120)
    assert report.terse > 0
    assert len(report.elements) == 1


@pytest.mark.parametrize(
    ("elements", "below", "more"),
    [
        ([], 0, None),
        ([], 10, "scroll"),
        ([element(name="Load more")], 10, "loadMore"),
        ([element(name="Mehr anzeigen (20)")], 10, "loadMore"),
        ([element(name="Cargar más")], 0, "loadMore"),
        ([element(role="link", name="Load more", is_link=True)], 10, "scroll"),
        ([element(role="link", name="3", next_page=True)], 10, "pagination"),
        ([element(role="link", name="Next", in_nav=True)], 0, "pagination"),
        ([element(name="Next")], 10, "scroll"),
        ([element(role="link", name="Page suivante")], 0, "pagination"),
        ([replace(element(name="Load more"), flags=("disabled",))], 0, None),
    ],
)
def test_more_says_which_way_leads_on(elements, below, more):
    assert more_by(scan_of(*elements, page=replace(PAGE, below_px=below))) == more


# -- commit points


NAMES = st.sampled_from(
    ["Save", "Delete", "Konto löschen", "Send", "Sign out", "", "Pay now", "Submit", "GPT", "Bitte bestätigen", "x"]
)


@given(
    st.lists(
        st.builds(
            SeenElement,
            node=st.integers(1, 9),
            facts=st.builds(
                ElementFacts,
                tag=st.sampled_from(["button", "a", "input", "div", "option"]),
                role=st.sampled_from(["button", "link", "option", "generic", "menuitem"]),
                name=NAMES,
                type=st.sampled_from(["", "submit", "image", "text", "button"]),
                id=st.sampled_from(["", "sendButton", "x"]),
                testid=st.sampled_from(["", "delete-row", "y"]),
            ),
            form=st.sampled_from([0, 7, 8]),
            is_link=st.booleans(),
            near_composer=st.booleans(),
            picker_label=st.sampled_from(["", "Model"]),
            says=st.sampled_from(["", "Delete"]),
            submits=st.booleans(),
            posts=st.booleans(),
        ),
        max_size=6,
        unique_by=lambda one: one.node,
    )
)
def test_the_preview_of_a_list_is_that_of_each_element_alone(elements):
    fields = (SeenField("input", "text", "q", "Search", ""),)
    forms = {
        ("", 7): SeenForm(7, True, False, "post", "/go", "", fields),
        ("", 8): SeenForm(8, True, True, "get", "/find", "", fields),
    }
    alone = {one.spot: classify_commit_point(commit_facts(one, forms.get(("", one.form)), "click")) for one in elements}
    assert previewed(elements, forms) == {spot: point for spot, point in alone.items() if point is not None}


# -- looks as the page writes them


def written(rows=(), frames=(), layers=(), viewport=(1280, 800), texts=("", "button", "Go")):
    return {
        "url": URL, "origin": "http://127.0.0.1", "title": "t", "readyState": "complete", "lang": "",
        "viewport": list(viewport), "scroll": {"above": 0, "below": 0}, "rows": [n for row in rows for n in row],
        "texts": list(texts), "total": len(rows), "scanTruncated": False, "forms": [], "closedRoots": 1,
        "headings": [], "landmarks": [], "layers": list(layers), "frames": list(frames), "look": 1, "stamp": 1,
    }  # fmt: skip


def row(node, bits=1, box=(0, 0, 10, 10)):
    return [node, bits, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, *box, 0, 0, 0, 0, 0]


def framed(scan, before=0, x=0, y=0, scale=1.0, bits=0, same=True, frame_id="F1"):
    return {
        "n": 9, "id": frame_id, "before": before, "x": x, "y": y, "w": 200, "h": 100, "scale": scale, "bits": bits,
        "same": same, "scan": scan,
    }  # fmt: skip


def test_a_row_has_as_many_numbers_as_the_host_reads():
    assert len(row(1)) == COLUMNS


def test_elements_of_a_frame_stand_where_the_frame_stands_shifted_and_clipped():
    inner = written([row(1, box=(5, 5, 10, 10)), row(2, box=(5, 300, 10, 10))], viewport=(200, 100))
    scan = read_scan(written([row(1), row(2)], [framed(inner, before=1, x=100, y=50, scale=2.0)]))
    assert [one.spot for one in scan.elements] == [("", 1), ("F1", 1), ("F1", 2), ("", 2)]
    first, second = scan.elements[1:3]
    assert (first.box, first.clipped) == ((110, 60, 20, 20), False)
    assert second.clipped
    assert scan.closed_roots == 2
    assert scan.url_of("F1") == URL
    assert json.dumps([frame.frame_id for frame in scan.frames]) == '["F1"]'


def test_a_modal_dialog_shuts_off_frames_outside_it_and_not_those_inside():
    dialog = {"n": 1, "role": "dialog", "name": "Ask", "modal": True}
    inner = written([row(1)])
    outside = read_scan(written([row(1), row(2, bits=1 | 2 | 4)], [framed(inner)], [dialog]))
    assert [one.behind for one in outside.elements] == [True, True, False]
    inside = read_scan(written([row(1)], [framed(inner, bits=2 | 4)], [dialog]))
    assert [(one.facts.frame, one.behind, one.in_dialog) for one in inside.elements] == [
        ("F1", False, True),
        ("", True, False),
    ]


def test_frames_that_were_not_asked_or_have_no_name_are_never_mixed_in():
    scan = read_scan(written([row(1)], [framed(None, same=False), framed(written([row(5)]), frame_id=None)]))
    assert [one.spot for one in scan.elements] == [("", 1)]
    assert [(frame.frame_id, frame.scanned) for frame in scan.frames] == [("F1", False)]


# -- forms


@pytest.mark.parametrize(
    ("control", "details", "tool"),
    [
        (element(1, "textbox", tag="input", type="text"), ControlDetails(typable=True), "nova.type_selector"),
        (element(1, "textbox", tag="input", type="password"), ControlDetails(secret=True), "nova.type_selector_secret"),
        (element(1, "combobox", tag="select"), ControlDetails(options=("a",)), "nova.choose_option"),
        (element(1, "combobox", tag="input", type="text"), ControlDetails(typable=True), "nova.type_selector"),
        (element(1, "checkbox", tag="input", type="checkbox"), ControlDetails(), "nova.choose_option"),
        (element(1, "switch", tag="button", type="button"), ControlDetails(), "nova.choose_option"),
        (element(1, "button", tag="input", type="file"), ControlDetails(), "nova.file_upload"),
        (element(1, name="Preview", type="submit", submits=True), ControlDetails(), "nova.click_selector"),
        (element(1, name="Delete", type="submit", submits=True), ControlDetails(), "nova.click_selector"),
        (element(1, name="Log in", type="submit", submits=True), ControlDetails(), "nova.guarded_login"),
    ],
)
def test_each_kind_of_control_names_the_tool_that_sets_it(control, details, tool):
    assert preferred_tool(view_of(scan_of(control)), control, details) == tool


# -- revisions


def test_looking_another_way_tells_of_no_change_and_each_way_has_its_own_past():
    perception = Perception()
    whole, part = scan_of(element(1), element(2, name="Open")), scan_of(element(1))
    assert perception.note("tab_1", whole, 1, 0, ("all",)).rev == 1
    assert perception.note("tab_1", part, 1, 0, ("part",)).rev == 1
    assert perception.note("tab_1", part, 1, 0, ("all",)).rev == 2
    assert perception.note("tab_1", part, 1, 0, ("part",)).rev == 2
    assert perception.note("tab_1", part, 2, 0, ("new",)).rev == 3
    assert perception.snapshot_of(1, ("all",), 0).scan is whole
    assert perception.snapshot_of(2, ("other",), 0) is None


def test_a_late_ref_never_moves_one_that_a_newer_look_gave_out():
    perception = Perception()
    old = perception.note("tab_1", scan_of(element(1)), 1, 0)
    new = view_of(scan_of(element(2)), perception=perception)
    assert perception.name_late(old, old.scan.elements[0]) != new.names["", 2]
    assert perception.get(new.names["", 2]).node == 2
