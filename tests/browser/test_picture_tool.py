"""Pictures as a client gets them: every argument, what is covered, what is framed, what it costs."""

import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from PIL import Image

from nova_mcp.browser.read.screenshot import INLINE_LIMIT_BYTES
from nova_mcp.errors import Unavailable

from .conftest import Site
from .nova_kit import NovaClient, open_nova, secrets_file

pytestmark = pytest.mark.browser

SECRET = "correct-horse-42"
COVERED = (0x77, 0x77, 0x77)


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory, server: Site) -> AsyncIterator[NovaClient]:
    data = tmp_path_factory.mktemp("pictures")
    secrets_file(data, shop=SECRET)
    async with open_nova(data, server) as client:
        yield client


async def shot(client: NovaClient, **arguments: Any) -> tuple[dict[str, Any], Image.Image | None]:
    answer = await client.answer("capture_screenshot", format="png", maxWidth=1280, **arguments)
    pictures = [Image.open(io.BytesIO(one.data)).convert("RGB") for one in answer.images]
    return answer.structured, pictures[0] if pictures else None


def colours(picture: Image.Image, box: tuple[int, int, int, int]) -> set[tuple[int, ...]]:
    return {colour for _, colour in picture.crop(box).getcolors(100_000) or []}


FIELD = "<style>body{{margin:0}}input,p{{display:block;margin:0;width:400px;height:40px;font:30px monospace}}</style>{}"


async def test_a_field_built_anew_around_a_typed_secret_is_covered(client: NovaClient) -> None:
    page = FIELD.format("<div id=h><input id=f style='border:0'></div>")
    await client.show(page)
    await client.call("type_selector_secret", selector="#f", secretName="shop")
    tab = client.tab((await client.call("page_info"))["targetId"])
    await tab.page.evaluate(
        "const old = document.querySelector('#f'), made = document.createElement('input');"
        "made.style.border = '0'; made.value = old.value; old.replaceWith(made)"
    )
    told, picture = await shot(client)
    assert told["maskedFields"] == 1
    assert picture is not None
    assert colours(picture, (5, 5, 380, 35)) == {COVERED}
    assert await tab.page.evaluate("document.querySelector('input').hasAttribute('style')")
    assert await tab.page.evaluate("document.querySelector('input').getAttribute('style')") == "border: 0px;"


async def test_a_page_that_shows_a_secret_as_text_is_covered_there_and_left_as_it_was(client: NovaClient) -> None:
    half = f"{SECRET[:5]}<b>{SECRET[5:]}</b>"
    await client.show(FIELD.format(f"<p>Welcome</p><p id=e>{half}</p><p>Bye</p>"))
    told, picture = await shot(client)
    assert told["maskedFields"] == 1
    assert picture is not None
    assert colours(picture, (5, 45, 395, 75)) == {COVERED}
    assert len(colours(picture, (5, 5, 395, 35))) > 1
    tab = client.tab(told["targetId"])
    assert await tab.page.evaluate("document.querySelector('#e').outerHTML") == f'<p id="e">{half}</p>'


async def test_a_field_that_appears_while_the_picture_is_taken_is_covered_too(client: NovaClient) -> None:
    await client.show(FIELD.format("<div id=h></div>"))
    tab = client.tab((await client.call("page_info"))["targetId"])
    # As soon as anything is covered, the page puts a fresh password field in the place of the old one.
    await tab.page.evaluate(
        "document.body.innerHTML = '<input type=password id=a value=hunter22 style=border:0>';"
        "new MutationObserver(() => { if (!document.querySelector('#b')) "
        "document.body.innerHTML = '<input type=password id=b value=hunter22 style=border:0>' })"
        ".observe(document, {attributes: true, subtree: true})"
    )
    _told, picture = await shot(client)
    assert picture is not None
    assert colours(picture, (5, 5, 380, 35)) == {COVERED}


async def test_a_secret_meant_for_other_hosts_is_never_told_to_the_page(client: NovaClient) -> None:
    url = client.site.url("html?body=<p>x</p>")
    assert client.nova._parts.secrets.shown_at(url, url) == (SECRET,)
    other = client.site.url("html?body=<p>x</p>", host="localhost")
    assert client.nova._parts.secrets.shown_at(other, other) == ()
    assert client.nova._parts.secrets.shown_at(url, other) == ()


async def test_an_element_is_framed_with_its_ref_and_the_page_keeps_nothing_of_it(client: NovaClient) -> None:
    await client.show("<body style='margin:0'><button id=b style='position:absolute;left:200px;top:200px'>Go</button>")
    before, _ = await shot(client, selector="#b")
    told, picture = await shot(client, selector="#b", highlight=True)
    assert (told["highlighted"], told["width"]) == (1, before["width"] + 120)
    assert picture is not None
    assert (0xD6, 0x00, 0x6C) in colours(picture, (58, 58, 64, 64))
    tab = client.tab(told["targetId"])
    assert await tab.page.evaluate("document.documentElement.children.length") == 2


async def test_everything_that_can_be_acted_on_is_framed_and_its_refs_can_be_used(client: NovaClient) -> None:
    await client.show(
        "<body><button id=a>Go</button><p>text</p><a href='#x'>There</a><dialog id=d><button>In</button></dialog>"
    )
    told, _ = await shot(client, highlight=True)
    assert told["highlighted"] == 2
    tab = client.tab(told["targetId"])
    await tab.page.evaluate("document.querySelector('#d').showModal()")
    assert (await shot(client, highlight=True))[0]["highlighted"] >= 1
    assert (await client.call("click_selector", selector="#a", timeoutMs=0))["reasonCode"] == "action.obstructed"


async def test_a_picture_too_heavy_to_travel_is_given_by_its_address(client: NovaClient) -> None:
    await client.show("<body style='margin:0'><canvas id=c width=1280 height=800></canvas>")
    tab = client.tab((await client.call("page_info"))["targetId"])
    await tab.page.evaluate(
        "const x = document.querySelector('#c').getContext('2d'), d = x.createImageData(1280, 800);"
        "for (let i = 0; i < d.data.length; i += 65536) crypto.getRandomValues(d.data.subarray(i, i + 65536));"
        "for (let i = 3; i < d.data.length; i += 4) d.data[i] = 255; x.putImageData(d, 0, 0)"
    )
    answer = await client.answer("capture_screenshot", format="png", maxWidth=1280)
    told = answer.structured
    assert (told["ok"], told["reasonCode"], answer.images) == (True, "screenshot.downgraded", ())
    assert told["bytes"] > INLINE_LIMIT_BYTES
    content = await client.nova.read_resource(told["uri"], client.principal)
    assert content is not None
    assert content.data is not None
    assert len(content.data) == told["bytes"]


async def test_every_field_of_the_answer_is_there_and_a_reference_carries_no_picture(client: NovaClient) -> None:
    await client.show("<p>x</p>")
    answer = await client.answer("capture_screenshot", region={"x": 0, "y": 0, "width": 100, "height": 50})
    told = answer.structured
    assert (told["width"], told["height"], told["sourceWidth"], told["sourceHeight"], told["scale"]) == (
        100,
        50,
        100,
        50,
        1.0,
    )
    assert told.keys() >= {"mimeType", "bytes", "sha256", "uri", "capturedAtUtc"}
    assert len(answer.images) == 1
    by_reference = await client.answer("capture_screenshot", responseMode="reference")
    assert by_reference.images == ()
    assert "reasonCode" not in by_reference.structured


async def test_a_picture_that_rides_on_a_click_comes_along_and_changes_nothing_when_it_cannot(
    client: NovaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.show("<button id=b onclick='this.textContent += 1'>Go</button>")
    answer = await client.answer("click_selector", selector="#b", includeScreenshot=True)
    assert (answer.structured["ok"], len(answer.images)) == (True, 1)
    assert answer.structured["screenshot"]["uri"].startswith("nova://screenshot/")

    async def broken(*_: object) -> None:
        raise Unavailable("cdp.renderer_stalled", "no answer", retry_after_ms=1)

    monkeypatch.setattr("nova_mcp.tools.browse.screenshot.capture", broken)
    without = await client.answer("click_selector", selector="#b", includeScreenshot=True)
    assert (without.structured["ok"], without.images, "screenshot" in without.structured) == (True, (), False)


@pytest.mark.parametrize(
    "arguments",
    [{"region": {"x": 0, "y": 0, "width": 9, "height": 9}, "selector": "p"}, {"fullPage": True, "ref": "e1"}],
)
async def test_two_subjects_are_one_too_many(client: NovaClient, arguments: dict[str, Any]) -> None:
    assert (await client.call("capture_screenshot", **arguments))["errorCode"] == -32602


async def test_compact_tells_of_requests_and_text_what_its_line_can_show_and_full_all_of_it(client: NovaClient) -> None:
    busy = "for (const n of [1, 2, 3, 4]) { fetch('/html?n=' + n); out.innerHTML += `<p>line ${n}</p>` }"
    for detail, requests, texts in (("compact", 2, 1), ("full", 4, 3)):
        await client.show(f'<div id=out role=status></div><button id=b onclick="{busy}">Go</button>')
        answer = await client.answer("click_selector", selector="#b", outputDetail=detail)
        effect = answer.structured["effect"]
        assert len(effect["requests"]) == requests, detail
        assert len(effect.get("newText", [])) <= texts
        assert (len(answer.text.splitlines()) > 1) is (detail == "full")
