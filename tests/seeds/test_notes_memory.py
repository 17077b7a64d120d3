"""Browser Memory as its contract describes it, through a real client."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from loop_kit import SECRET
from notes_kit import DAY, Notebook, notebook
from real_kit import records

from nova_mcp.calls.model import CallRequest
from nova_mcp.memory.notes import memory_store
from nova_mcp.memory.notes.tables import browser_memory

HOST = "shop.example.com"
MEMORY_FIELDS = {
    *("memoryId", "domain", "matchedBy", "urlPattern", "memoryType", "content", "source", "decayScore"),
    *("accessCount", "expired", "createdAtUtc", "refreshedAtUtc", "expiresAtUtc"),
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Notebook]:
    memory = {"users": ["local", "ada"], "exclude_domains": ["hidden.example", "=only.example", ".gov"]}
    async with notebook(tmp_path_factory.mktemp("memory"), notes={"browser_memory": memory}) as book:
        yield book


@pytest.fixture
async def book(running: Notebook) -> Notebook:
    await running.clear()
    return running


async def note(book: Notebook, content: str = "Prefers dark mode", **more: Any) -> dict[str, Any]:
    return await book.call("memory_note", content=content, **{"domain": HOST, **more})


async def contents(book: Notebook, **more: Any) -> list[str]:
    return [one["content"] for one in (await book.call("memory_recall", **more))["memories"]]


# -- memory_note


async def test_a_note_is_answered_with_how_long_it_lives(book: Notebook) -> None:
    body = await note(book, "  Prefers dark mode ", memoryType="preference", urlPattern="/cart*")
    assert set(body) == {
        *("ok", "saved", "action", "memoryId", "domain", "memoryType", "decayScore", "expiresAtUtc", "evicted")
    }
    assert (body["saved"], body["action"], body["domain"], body["memoryType"]) == (True, "created", HOST, "preference")
    assert (body["decayScore"], body["evicted"]) == (1.0, 0)
    [row] = await book.rows(browser_memory)
    assert (row["content"], row["source"], row["principal"]) == ("Prefers dark mode", "agent", "local")
    assert (row["expires_at_ms"] - row["created_at_ms"]) / DAY == pytest.approx(518.6, abs=0.05)


async def test_the_same_again_is_refreshed(book: Notebook) -> None:
    first = await note(book)
    book.later(60 * DAY)
    again = await note(book, "Prefers   dark mode")
    assert (again["action"], again["memoryId"], again["decayScore"]) == ("refreshed", first["memoryId"], 1.0)
    assert (await book.rows(browser_memory))[0]["content_rev"] == 2


async def test_a_type_that_is_not_named_is_a_note(book: Notebook) -> None:
    assert (await note(book))["memoryType"] == "note"
    assert await book.refused("memory_note", content="x", domain=HOST, memoryType="fact") == (-32602, "invalid_params")


@pytest.mark.parametrize("given", ["www.Shop.Example.com", "https://shop.example.com:8443/x?y"])
async def test_a_domain_has_one_spelling(book: Notebook, given: str) -> None:
    assert (await note(book, domain=given))["domain"] == HOST


@pytest.mark.parametrize("given", ["com", "co.uk", "a b", "ada@example.com", "a..b", "1.2.3.4.5"])
@pytest.mark.parametrize("tool", ["memory_note", "memory_recall", "memory_forget"])
async def test_what_names_no_host_is_refused(book: Notebook, tool: str, given: str) -> None:
    more = {"content": "x"} if tool == "memory_note" else {}
    assert await book.refused(tool, domain=given, **more) == (-32602, "invalid_domain")


async def test_without_a_page_a_domain_is_needed(book: Notebook) -> None:
    assert await book.refused("memory_note", content="x") == (-32602, "domain_required")


@pytest.mark.parametrize(
    "text", ["password: hunter2", "4111 1111 1111 1111", "AKIAIOSFODNN7EXAMPLE", f"it is {SECRET}"]
)
async def test_a_secret_is_neither_kept_nor_logged(book: Notebook, text: str) -> None:
    body = await note(book, text)
    assert (body["errorCode"], body["reasonCode"]) == (-32602, "notes.secret_like")
    assert text not in str(body)
    assert await book.rows(browser_memory) == []
    assert not [one for one in records(book.data_dir) if text in str(one)]


async def test_a_secret_in_a_pattern_is_not_logged_either(book: Notebook) -> None:
    body = await note(book, "Where it is reset.", urlPattern="/reset/token=hunter2-Zq8!")
    assert (body["errorCode"], body["reasonCode"]) == (-32602, "notes.secret_like")
    assert not [one for one in records(book.data_dir) if "hunter2" in str(one)]


async def test_what_is_remembered_stays_out_of_the_ledger(book: Notebook) -> None:
    await note(book, "likes window seats")
    await contents(book, query="window seats")
    assert not [one for one in records(book.data_dir) if "window" in str(one)]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("hidden.example", "user_list"),
        ("a.hidden.example", "user_list"),
        ("only.example", "user_list"),
        ("irs.gov", "user_list"),
        ("acme.bank", "sensitive_suffix"),
        ("paypal.com", "sensitive_site"),
        ("pay.example.com", "sensitive_word"),
        ("my-bank.example", "sensitive_word"),
        ("who.int", "sensitive_category"),
    ],
)
async def test_an_excluded_host_is_refused_with_its_reason(book: Notebook, host: str, reason: str) -> None:
    body = await note(book, domain=host)
    assert (body["errorCode"], body["reasonCode"]) == (-32035, "browser_memory.domain_excluded")
    assert (body["reason"], body["saved"]) == (reason, False)
    assert await book.rows(browser_memory) == []
    [record] = records(book.data_dir)[-1:]
    assert record.outcome.reason_code == "browser_memory.domain_excluded"
    recalled = await book.call("memory_recall", domain=host)
    assert (recalled["ok"], recalled["excluded"], recalled["count"], recalled["memories"]) == (True, True, 0, [])


@pytest.mark.parametrize("host", ["nothidden.example", "hidden.example.test", "a.only.example", "payroll.example.com"])
async def test_a_host_that_only_looks_excluded_is_not(book: Notebook, host: str) -> None:
    assert (await note(book, domain=host))["saved"] is True


async def test_a_full_store_of_the_users_own_rows_is_refused(book: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_store, "PER_HOST", 2)
    for text in ("a1", "b1"):
        await note(book, text)
    evicting = await note(book, "c1")
    assert evicting["evicted"] == 1
    await book.write(browser_memory.update().values(source="user"))
    assert await book.refused("memory_note", content="d1", domain=HOST) == (-32003, "browser_memory.full")
    assert len(await book.rows(browser_memory)) == 2


# -- opt-in


async def test_who_did_not_ask_for_it_can_only_forget(book: Notebook) -> None:
    await note(book)
    book.become("eve")
    assert await book.refused("memory_note", content="x", domain=HOST) == (-32035, "browser_memory.disabled")
    assert await book.refused("memory_recall") == (-32035, "browser_memory.disabled")
    assert (await book.call("memory_forget", all=True))["status"] == "noop"
    assert len(await book.rows(browser_memory)) == 1


# -- memory_recall


async def test_recall_shows_the_most_present_first_with_everything_about_it(book: Notebook) -> None:
    await note(book, "old context", memoryType="context")
    book.later(14 * DAY)
    await note(book, "new note")
    body = await book.call("memory_recall", domain=HOST)
    assert set(body) == {"ok", "memories", "count", "excluded"}
    first, second = body["memories"]
    assert set(first) == MEMORY_FIELDS
    assert (first["content"], first["matchedBy"], first["source"], first["accessCount"]) == (
        "new note",
        "host",
        "agent",
        1,
    )
    assert second["decayScore"] == pytest.approx(0.625, abs=0.001)
    assert (second["expired"], body["count"], body["excluded"]) == (False, 2, False)


async def test_recall_of_a_host_takes_its_parent_in(book: Notebook) -> None:
    for domain in (HOST, "example.com", "other.example.com"):
        await note(book, domain, domain=domain)
    found = (await book.call("memory_recall", domain=HOST))["memories"]
    assert {one["domain"]: one["matchedBy"] for one in found} == {HOST: "host", "example.com": "parent"}
    every = (await book.call("memory_recall"))["memories"]
    assert [one["matchedBy"] for one in every] == ["any"] * 3


async def test_a_query_is_literal_and_every_word_must_occur(book: Notebook) -> None:
    for text in ("Sale of 100% wool", "1000 wool socks"):
        await note(book, text)
    assert await contents(book, query="100% WOOL") == ["Sale of 100% wool"]
    assert await contents(book, query="wool nothing") == []
    assert await contents(book, query="wo_l") == []


async def test_expired_rows_are_shown_on_demand(book: Notebook) -> None:
    await note(book, memoryType="context")
    book.later(61 * DAY)
    assert await contents(book) == []
    [one] = (await book.call("memory_recall", includeExpired=True))["memories"]
    assert one["expired"] is True
    assert one["decayScore"] < 0.05


async def test_recall_keeps_to_type_and_limit(book: Notebook) -> None:
    for number in range(4):
        await note(book, f"n{number}", memoryType="preference" if number else "note")
    assert len(await contents(book, limit=2)) == 2
    assert await contents(book, memoryType="note") == ["n0"]


async def test_no_answer_has_another_principals_rows(book: Notebook) -> None:
    await note(book)
    book.become("ada")
    assert await contents(book) == []
    assert await contents(book, domain=HOST, includeExpired=True) == []
    mine = await note(book)
    assert mine["action"] == "created"
    assert (await book.call("memory_forget", all=True))["deleted"] == 1
    book.become("local")
    assert await contents(book) == ["Prefers dark mode"]


# -- memory_forget


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"domain": HOST}, ["example.com", "xshop.example.com"]),
        ({"domain": HOST, "memoryType": "note"}, ["a.shop.example.com", "example.com", "xshop.example.com"]),
        ({"memoryType": "preference"}, ["example.com", HOST]),
        ({"all": True}, []),
    ],
)
async def test_forgetting_is_final(book: Notebook, given: dict[str, Any], left: list[str]) -> None:
    for domain in (HOST, "a.shop.example.com", "example.com", "xshop.example.com"):
        kind = "preference" if domain in ("a.shop.example.com", "xshop.example.com") else "note"
        await note(book, domain, domain=domain, memoryType=kind)
    body = await book.call("memory_forget", **given)
    assert (body["ok"], body["status"], body["deleted"]) == (True, "deleted", 4 - len(left))
    assert sorted(row["domain"] for row in await book.rows(browser_memory)) == sorted(left)


async def test_one_memory_is_forgotten_by_its_id(book: Notebook) -> None:
    kept, gone = await note(book, "kept"), await note(book, "gone")
    assert (await book.call("memory_forget", memoryId=gone["memoryId"]))["status"] == "deleted"
    again = await book.call("memory_forget", memoryId=gone["memoryId"])
    assert (again["ok"], again["status"], again["reasonCode"], again["deleted"]) == (
        *(False, "not_found"),
        *("memory.not_found", 0),
    )
    assert [row["memory_id"] for row in await book.rows(browser_memory)] == [kept["memoryId"]]


async def test_a_filter_without_a_hit_is_not_found_and_an_empty_store_is_no_trouble(book: Notebook) -> None:
    body = await book.call("memory_forget", domain="nothing.example")
    assert (body["ok"], body["status"], body["reasonCode"]) == (False, "not_found", "memory.not_found")
    body = await book.call("memory_forget", all=True)
    assert (body["ok"], body["status"], body["deleted"]) == (True, "noop", 0)


async def test_it_has_to_be_said_what_to_forget(book: Notebook) -> None:
    await note(book)
    assert await book.refused("memory_forget") == (-32602, "filter_required")
    assert await book.refused("memory_forget", all=False) == (-32602, "filter_required")
    for given in (
        {"memoryId": 1, "all": True},
        {"memoryId": 1, "domain": HOST},
        {"memoryId": 1, "memoryType": "note"},
        {"all": True, "domain": HOST},
        {"all": True, "memoryType": "note"},
    ):
        assert await book.refused("memory_forget", **given) == (-32602, "conflicting_arguments")
    assert len(await book.rows(browser_memory)) == 1


async def test_rows_of_a_host_excluded_later_can_still_be_forgotten(book: Notebook) -> None:
    await note(book)
    await book.write(browser_memory.update().values(domain="hidden.example"))
    assert await contents(book) == []
    assert (await book.call("memory_forget", domain="hidden.example"))["deleted"] == 1


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
async def test_text_that_no_store_takes_is_refused(book: Notebook, text: str) -> None:
    answer = await book.nova.call(_request("memory_note", {"content": text, "domain": HOST}))
    assert answer.structured["reasonCode"] == "invalid_params"


def _request(tool: str, arguments: dict[str, Any]) -> CallRequest:
    async def silent(done: float, total: float | None, message: str) -> None:
        return None

    return CallRequest(tool=f"nova.{tool}", arguments=arguments, principal="local", progress=silent)
