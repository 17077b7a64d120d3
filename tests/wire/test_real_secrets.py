"""No secret value leaves: a page that echoes it in every spelling, the real program, every place it writes to."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from real_kit import NOVA, real_stdio, records, small_site, text_of

pytestmark = pytest.mark.browser

SECRET = 'c0rrect "horse"/b&ttery'
PIN = "73915582"
FROM_ENVIRONMENT = "tangerine-7-parrot"


def spellings(value: str) -> Iterator[str]:
    raw = value.encode()
    yield value
    yield quote(value)
    yield quote(value, safe="")
    yield quote_plus(value)
    yield json.dumps(value)[1:-1]
    yield base64.b64encode(raw).decode()
    yield base64.urlsafe_b64encode(raw).decode()
    for number in range(3):
        # Inside a longer encoded text the first and the last character are shared with the neighbours.
        encoded = base64.b64encode(b"x" * number + raw + b"rest of it").decode()
        yield encoded[-(-number * 8 // 6) : (number + len(raw)) * 8 // 6]


def longer(value: str) -> Iterator[str]:
    for number in range(3):
        yield base64.b64encode(b"x" * number + value.encode() + b"rest of it").decode()


def page(values: list[str]) -> str:
    echoed = "".join(
        f"<li><button aria-label={json.dumps(text)!s}>{_html(text)}</button><code>{_html(text)}</code></li>"
        for value in values
        for text in (*spellings(value), *longer(value))
    )
    return (
        f"<!doctype html><html lang=en><title>{_html(values[0])}</title><main><h1>Echo {_html(values[0])}</h1>"
        f"<ul>{echoed}</ul><label>Field <input id=field value='{_html(values[0])}'></label>"
        f"<button id=alert onclick='alert(document.title)'>Tell</button></main></html>"
    )


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("'", "&#39;")


def give_secrets(data_dir: Path) -> None:
    path = data_dir / "secrets.toml"
    path.write_text(
        f"[passphrase]\nvalue = {json.dumps(SECRET)}\nhosts = ['127.0.0.1']\n[pin]\nvalue = '{PIN}'\n", encoding="utf-8"
    )
    path.chmod(0o600)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("nova.perceive", {}),
    ("nova.perceive", {"mode": "state"}),
    ("nova.read_text", {}),
    ("nova.type_selector", {"selector": "#field", "text": f"typed {SECRET}"}),
    ("nova.click_selector", {"selector": "#alert"}),
    ("nova.click_selector", {"selector": f"text={SECRET}"}),
    ("nova.click_selector", {"selector": f"#{PIN}"}),
    ("nova.page_info", {}),
    ("nova.tabs", {}),
    ("nova.perceive", {SECRET: PIN}),
    ("nova.call", {"tool": "nova.navigate", "args": {"url": f"https://{FROM_ENVIRONMENT}.invalid/{PIN}"}}),
]


def leaks(text: str) -> list[str]:
    return [spelled for value in (SECRET, PIN, FROM_ENVIRONMENT) for spelled in spellings(value) if spelled in text]


async def test_no_answer_row_or_log_line_holds_a_secret_that_a_page_echoes(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    give_secrets(data_dir)
    answers: list[str] = []
    log = tmp_path / "log"
    with small_site({"/echo": page([SECRET, PIN, FROM_ENVIRONMENT])}) as (base, _), log.open("w") as errors:
        command = StdioServerParameters(
            command=NOVA,
            args=["serve", "--data-dir", str(data_dir), "--log-level", "debug", "--keep-raw-urls", "--tools", "all"],
            env={"NOVA_SECRET_TOKEN": FROM_ENVIRONMENT},
        )
        async with Client(stdio_client(command, errlog=errors), mode="auto") as client:
            first = await client.call_tool("nova.navigate", {"url": f"{base}/echo"})
            assert first.structured_content is not None
            assert first.structured_content["title"] == "«secret:passphrase»"
            answers.append(first.model_dump_json())
            there = f"{base}/{quote(PIN)}/x?q={quote(SECRET)}#{quote_plus(SECRET)}"
            answers.append((await client.call_tool("nova.tab_new", {"url": there})).model_dump_json())
            answers.append((await client.call_tool("nova.navigate", {"url": f"{base}/echo"})).model_dump_json())
            for tool, arguments in CALLS:
                answer = await client.call_tool(tool, arguments)
                answers.append(answer.model_dump_json())
                answers.append(text_of(answer))
    assert "«secret:passphrase»" in "".join(answers)
    assert "«secret:pin»" in "".join(answers)
    assert "«secret:TOKEN»" in "".join(answers)
    for answer in answers:
        assert leaks(answer) == []
    assert leaks(log.read_text()) == []
    kept = b"".join(path.read_bytes() for path in data_dir.glob("nova.db*")).decode("utf-8", "replace")
    assert leaks(kept) == []
    opened = next(record for record in records(data_dir) if record.tool_name == "nova.tab_new")
    assert opened.after.url == f"{base}/«secret:pin»/x?q=«secret:passphrase»"


async def test_a_login_outlives_the_program_and_belongs_to_one_at_a_time(tmp_path: Path) -> None:
    cookie = "document.cookie = 'seen=' + ((+(document.cookie.match(/seen=(\\d+)/) ?? [0, 0])[1]) + 1)"
    visits = f"<!doctype html><title>x</title><p id=n></p><script>{cookie}; document.title = document.cookie</script>"
    titles: list[tuple[str, int]] = []

    async def visit(client: Client, base: str) -> None:
        told = (await client.call_tool("nova.navigate", {"url": f"{base}/visits"})).structured_content
        assert told is not None
        titles.append((told["title"], len(told.get("warnings", []))))

    with small_site({"/visits": visits}) as (base, _), anyio.fail_after(120):
        async with real_stdio(tmp_path, "auto") as client:
            await visit(client, base)
            async with real_stdio(tmp_path, "auto") as second:
                await visit(second, base)
        async with real_stdio(tmp_path, "auto") as client:
            await visit(client, base)
        async with real_stdio(tmp_path, "auto", "--ephemeral") as client:
            await visit(client, base)
    assert titles == [("seen=1", 0), ("seen=1", 1), ("seen=2", 0), ("seen=1", 0)]
