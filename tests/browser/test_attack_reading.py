"""Pages and callers that try to make reading lie: text out of sight, lists too long, tokens nobody gave out."""

import base64
import json
import re

import pytest

from .nova_kit import open_nova

OUT_OF_SIGHT = (
    '<div style="content-visibility:hidden">trap skipped</div>',
    "<details><summary>More</summary>trap folded</details>",
    "<div hidden=until-found>trap until found</div>",
    '<div style="-webkit-text-fill-color:transparent">trap unfilled</div>',
    '<div style="clip-path:inset(49.9% 49.9%)">trap slit</div>',
    '<div style="clip-path:circle(1px at 0 0)">trap point</div>',
    '<div style="letter-spacing:-99px">trap heap</div>',
    '<div style="zoom:.01">trap tiny</div>',
    '<div style="color:#fdfdfd">trap pale</div>',
    '<div style="position:fixed;top:9000px">trap below</div>',
)
IN_SIGHT = (
    '<h1 style="background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent">seen painted</h1>',
    '<p style="color:transparent;-webkit-text-stroke:1px red">seen outlined</p>',
    '<p style="color:transparent;-webkit-text-fill-color:red">seen filled</p>',
    "<details open><summary>Less</summary>seen unfolded</details>",
    '<p style="clip-path:inset(5% round 4px)">seen framed</p>',
    '<div style="transform:translate(0)"><p style="position:fixed;top:2000px">seen further down</p></div>',
)


@pytest.fixture(scope="module")
async def nova(tmp_path_factory, server):
    async with open_nova(tmp_path_factory.mktemp("reading"), server) as client:
        yield client


async def test_text_that_no_person_sees_is_neither_read_nor_found_and_painted_text_is(nova):
    await nova.show("".join((*OUT_OF_SIGHT, *IN_SIGHT)))
    read = (await nova.call("read_text"))["text"]
    assert re.findall("trap[a-z ]*", read) == []
    assert len(re.findall("seen [a-z ]*", read)) == len(IN_SIGHT)
    assert (await nova.call("search_text", text="trap"))["count"] == 0
    assert (await nova.call("search_text", text="seen"))["count"] == len(IN_SIGHT)
    hidden = (await nova.call("read_text", includeHidden=True))["text"]
    assert len(re.findall("trap [a-z ]*", hidden)) == len(OUT_OF_SIGHT)


async def test_signs_without_a_shape_are_read_only_when_hidden_text_is_asked_for(nova):
    told = "".join(chr(0xE0000 + ord(sign)) for sign in "obey")
    await nova.show(f"<main><p>be{told}fore\x1b[2J\x85! after</p></main>")
    assert (await nova.call("read_text"))["text"] == "before[2J! after"
    assert told in (await nova.call("read_text", includeHidden=True))["text"]
    assert (await nova.call("search_text", text="before"))["count"] == 1


async def test_cells_keep_apart_in_the_text_of_an_element_that_was_waited_for(nova):
    await nova.show("<table><tr><td>one</td><td>two</td></tr><tr><td>three</td><td>four</td></tr></table>")
    assert (await nova.call("wait_for_selector", selector="table"))["text"] == "one two three four"


async def test_the_last_of_thousands_of_options_is_found(nova):
    await nova.show("<select id=s></select>")
    fill = "() => { s.innerHTML = Array.from({length: 5000}, (_, n) => `<option>Number ${n}</option>`).join('') }"
    await nova.tab("tab_1").page.evaluate(fill)
    told = await nova.call("search_text", text="Number 4999", match="exact")
    assert (told["count"], told["matches"][0]["tag"]) == (1, "select")


@pytest.mark.parametrize(
    "place",
    [
        ["main", None, -5, None],
        ["main", None, 1000, None],
        ["", None, None, None],
        ["main", "e1", None, None],
        [None, "! gate\nforged", None, None],
        [None, None, 3, None],
        [None, None, None, "frame"],
        ["main", None, None, ""],
    ],
)
async def test_a_token_that_names_no_place_is_refused_before_the_page_is_asked(nova, place):
    await nova.show("<main>text</main>")
    fields = [1, "0" * 32, 0, "auto", False, *place]
    told = await nova.call(
        "read_text", continuationToken=base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    )
    assert (told["errorCode"], told["reasonCode"], told["stage"]) == (-32602, "invalid_params", "validate")
    assert "forged" not in told["message"]
