"""Pictures of the dashboard: which page stands for which place, and that the documents have one of each."""

import io

import pytest
from bench.pictures import DESK, OUT, PHONE, SCHEMES
from bench.pictures_pages import MOST_BYTES, PICTURE_WORTH, best, lighter, look_at, picture_name, place_of
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from nova_mcp.dashboard.app import PLACES

BASE = "http://127.0.0.1:9/dashboard/calls"
PATHS = ("/", "/calls", "/calls/{call_id}", "/tasks/runs/{instance_id}", "/tasks/runs/open")


@pytest.mark.parametrize(
    ("path", "name"),
    [("/", "activity"), ("/calls", "calls"), ("/calls/{call_id}", "calls-one"), ("/a/b/{c}/d", "a-b-one-d")],
)
def test_pictures_are_named_after_addresses(path: str, name: str) -> None:
    assert picture_name(path, "activity") == name


def test_no_two_places_share_a_picture() -> None:
    names = [picture_name(place.path, place.section) for place in PLACES if place.get is not None]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("http://h/dashboard/", "/"),
        ("http://h/dashboard/calls?tool=x", "/calls"),
        ("http://h/dashboard/calls/01a", "/calls/{call_id}"),
        ("http://h/dashboard/tasks/runs/open", "/tasks/runs/open"),
        ("http://h/dashboard/tasks/runs/7", "/tasks/runs/{instance_id}"),
        ("http://h/dashboard/nowhere", None),
    ],
)
def test_an_address_belongs_to_one_place(address: str, place: str | None) -> None:
    assert place_of(address, PATHS) == place


def test_only_ways_within_the_dashboard_are_followed() -> None:
    page = """<a href="/dashboard/calls/1#top">x</a><a href="/dashboard/calls/1">x</a><a href="/mcp">x</a>
      <a href="https://elsewhere.example/dashboard/">x</a><a href="//elsewhere.example/dashboard/x">x</a><a>x</a>
      <form method="post" action="/dashboard/controls/stop"><input name="csrf" value="1"></form>"""
    assert look_at(page, BASE).leads_to == ("http://127.0.0.1:9/dashboard/calls/1",)


def test_a_form_that_only_asks_is_a_way_too_and_is_sent_as_it_stands() -> None:
    page = """<form method="get" action="/dashboard/controls/switch"><select name="what"><option value="a">A
      <option value="b">B</select><input name="host"><input type="checkbox" name="all" value="1"></form>"""
    assert look_at(page, BASE).leads_to == ("http://127.0.0.1:9/dashboard/controls/switch?what=a&host=",)


def test_a_page_with_pictures_has_more_to_show() -> None:
    look = look_at('<img src="/dashboard/calls/1/picture/after" alt="">', BASE)
    assert look.pictures == ("http://127.0.0.1:9/dashboard/calls/1/picture/after",)
    assert look.worth > PICTURE_WORTH


def test_the_plain_page_stands_for_its_place_unless_another_shows_clearly_more() -> None:
    assert best({}) is None
    assert best({"http://h/c": 100, "http://h/c?page=2": 110}) == "http://h/c"
    assert best({"http://h/c": 100, "http://h/c?days=30": 200}) == "http://h/c?days=30"
    assert best({"http://h/e?id=1": 100, "http://h/e?id=2": 101}) == "http://h/e?id=2"
    assert best({"http://h/c/1": 10, "http://h/c/2": 30, "http://h/c/1?more=1": 31}) == "http://h/c/2"


@given(st.integers(1, 60), st.integers(1, 60), st.randoms(use_true_random=False))
def test_a_lighter_picture_has_the_same_size(width: int, height: int, chance) -> None:
    noise = Image.frombytes("RGB", (width, height), chance.randbytes(3 * width * height))
    out = io.BytesIO()
    noise.save(out, "PNG")
    with Image.open(io.BytesIO(lighter(out.getvalue()))) as light:
        assert light.size == (width, height)
        assert light.format == "PNG"


def _size(name: str) -> tuple[int, int]:
    path = OUT / name
    assert path.stat().st_size <= MOST_BYTES, f"{name} is too heavy"
    with Image.open(path) as picture:
        return picture.size


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_documents_have_a_picture_of_every_page_in_the_menu(scheme: str) -> None:
    """Other pages are checked while pictures are taken; what they show depends on the store."""
    names = [picture_name(place.path, place.section) for place in PLACES if place.menu is not None]
    assert len(names) > 5
    assert {_size(f"{name}-{scheme}.png") for name in (*names, "login")} == {(DESK["width"], DESK["height"])}
    assert _size(f"phone-{scheme}.png") == (PHONE["width"], PHONE["height"])
