"""Pictures: measured as they are, scaled by the browser, without secrets, and not kept for ever."""

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.act.navigation_report import LoadOptions
from nova_mcp.browser.read.screenshot import (
    KEEP_BYTES,
    KEEP_MS,
    MAX_AREA_PX,
    MAX_HEIGHT_PX,
    Kept,
    Layout,
    Region,
    Shot,
    ShotOptions,
    capture,
    frame_shot,
    image_size,
    outdated,
    screenshot_shelf,
)
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.errors import NotFound

from .conftest import Site

TALL = "<body style='margin:0'><div style='height:{height}px;width:{width}px;background:linear-gradient(red,blue)'>"


def opened(shot: Shot) -> Image.Image:
    return Image.open(io.BytesIO(shot.data)).convert("RGB")


@pytest.mark.parametrize("format_", ["jpeg", "png"])
async def test_the_viewport_is_scaled_to_the_width_asked_for(tab: Tab, site: Site, format_) -> None:
    await navigate(tab, site.url("html?body=<p>x</p>"))
    shot = await capture(tab, ShotOptions(format=format_, max_width=640))
    assert (shot.source_width, shot.source_height, shot.scale) == (1280, 800, 0.5)
    assert (shot.width, shot.height) == opened(shot).size == (640, 400)
    assert shot.mime_type == f"image/{format_}"


async def test_a_picture_is_never_enlarged(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?body=<p>x</p>"))
    shot = await capture(tab, ShotOptions(max_width=4096))
    assert (shot.width, shot.scale) == (1280, 1.0)


async def test_a_full_page_is_whole(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?body=" + TALL.format(height=3000, width=100)))
    shot = await capture(tab, ShotOptions(full_page=True, max_width=320, format="png"))
    assert (shot.source_width, shot.source_height, shot.cut) == (1280, 3000, False)
    picture = opened(shot)
    assert picture.getpixel((2, 2))[0] > 200
    assert picture.getpixel((2, picture.height - 3))[2] > 200


async def test_a_page_longer_than_the_limit_is_cut_and_says_so(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?body=" + TALL.format(height=60_000, width=100)))
    shot = await capture(tab, ShotOptions(full_page=True, max_width=64, quality=10))
    assert shot.cut
    assert shot.source_height <= MAX_HEIGHT_PX
    assert shot.source_height * shot.source_width <= MAX_AREA_PX


async def test_a_region_is_taken_from_the_document_and_an_element_from_the_screen(tab: Tab, site: Site) -> None:
    page = "<body style='margin:0'><div style='height:2000px'></div><div style='width:50px;height:50px;background:red'>"
    await navigate(tab, site.url(f"html?body={page}</div><div style='height:2000px'>"))
    await tab.page.evaluate("scrollTo(0, 1500)")
    for options in (
        ShotOptions(clip=Region(0, 2000, 50, 50), format="png"),
        ShotOptions(clip=Region(0, 500, 50, 50), in_viewport=True, format="png"),
    ):
        shot = await capture(tab, options)
        assert (shot.width, shot.height) == (50, 50)
        assert opened(shot).getpixel((25, 25)) == (255, 0, 0)


@pytest.mark.parametrize("clip", [Region(0, 0, 0, 10), Region(-50, -50, 20, 20), Region(90_000, 0, 10, 10)])
async def test_nothing_to_see_is_not_capturable(tab: Tab, clip: Region) -> None:
    with pytest.raises(NotFound) as caught:
        await capture(tab, ShotOptions(clip=clip))
    assert caught.value.reason_code == "screenshot.not_capturable"


async def test_secret_fields_are_covered_in_the_picture_only(tab: Tab, site: Site) -> None:
    frame = f"<iframe width=500 height=300 src='{site.url('host/secrets.html', host='localhost')}'>"
    for url, top, masked in (
        (site.url("host/secrets.html"), 0, 4),
        (site.url(f"html?body=<body style='margin:0'>{frame}"), 2, 4),
    ):
        await navigate(tab, url, LoadOptions("load"))
        shot = await capture(tab, ShotOptions(format="png", max_width=1280))
        assert shot.masked_fields == masked
        picture = opened(shot)
        for row in (1, 2, 3, 4):
            strip = picture.crop((12, top + row * 40 + 8, 380, top + row * 40 + 32))
            assert strip.getcolors() == [(strip.width * strip.height, (0x77, 0x77, 0x77))], row
        assert len(picture.crop((12, top + 8, 380, top + 32)).getcolors(4096)) > 1
    await navigate(tab, site.url("host/secrets.html"))
    await capture(tab, ShotOptions())
    assert await tab.page.evaluate("document.adoptedStyleSheets.length") == 0
    assert await tab.page.get_attribute("#code", "style") == "-webkit-text-fill-color: black !important;"


def test_a_file_that_is_no_picture_has_no_size() -> None:
    with pytest.raises(ValueError):
        image_size(b"\xff\xd8" + b"\0" * 40)


sizes = st.floats(1, 50_000)
regions = st.builds(Region, st.floats(-5000, 50_000), st.floats(-5000, 50_000), sizes, sizes)


@given(width=sizes, height=sizes, clip=st.none() | regions, full=st.booleans(), max_width=st.integers(64, 4096))
def test_no_picture_exceeds_its_bounds(width: float, height: float, clip, full: bool, max_width: int) -> None:
    layout = Layout(Region(0, 0, 1280, 800), width, height)
    frame = frame_shot(layout, ShotOptions(clip=clip, full_page=full, max_width=max_width))
    if frame is not None:
        assert frame.area.height <= MAX_HEIGHT_PX
        assert frame.area.width * frame.area.height <= MAX_AREA_PX
        assert frame.area.x >= 0
        assert frame.area.y >= 0
        assert frame.area.width * frame.scale <= max_width * 1.000001
        assert 0 < frame.scale <= 1


def test_pictures_go_after_a_day_or_when_there_are_too_many() -> None:
    now = 10 * KEEP_MS
    old, fresh = Kept("old", 1, now - KEEP_MS - 1), Kept("fresh", 1, now - KEEP_MS)
    assert outdated([old, fresh], now) == ("old",)
    big = [Kept(str(n), KEEP_BYTES // 2, now - n) for n in range(4)]
    assert outdated(big, now) == ("2", "3")


def test_the_shelf_finds_what_it_keeps_and_nothing_else(tmp_path: Path) -> None:
    shelf = screenshot_shelf(tmp_path)
    shot = Shot(b"abc", "image/png", 1, 1, 1, 1, 1.0, "x")
    now = 1_700_000_000_000
    path = shelf.put("ab12", shot, now)
    assert shelf.find("ab12") == path
    assert path.read_bytes() == b"abc"
    assert path.stat().st_mode & 0o777 == 0o600
    for strange in ("", "../ab12", "*", "ab1", "AB12"):
        assert shelf.find(strange) is None
    os.utime(path, (0, 0))
    assert shelf.prune(now) == 1
    assert shelf.find("ab12") is None
