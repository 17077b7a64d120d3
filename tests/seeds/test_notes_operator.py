"""Operator Notes as their contract describes them, through a real client."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from loop_kit import SECRET
from notes_kit import DAY, Notebook, notebook
from real_kit import records

from nova_mcp.memory.notes import operator_store
from nova_mcp.memory.notes.tables import operator_note

STORE_FIELDS = {"ok", "action", "noteId", "rev", "noteCount", "deduplicated", "evicted"}
FOUND_FIELDS = {
    *("id", "content", "tags", "category", "source", "rev", "score", "scoreBreakdown", "updatedAtUtc"),
}
LISTED_FIELDS = {
    *("id", "content", "tags", "category", "source", "rev", "matchCount", "lastMatchedAtUtc", "createdAtUtc"),
    "updatedAtUtc",
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Notebook]:
    async with notebook(tmp_path_factory.mktemp("operator")) as book:
        yield book


@pytest.fixture
async def book(running: Notebook) -> Notebook:
    await running.clear()
    return running


async def put(book: Notebook, content: str = "Apply the coupon first", **more: Any) -> dict[str, Any]:
    return await book.call("operator_notes_store", content=content, **{"tags": ["checkout"], **more})


async def found(book: Notebook, *keywords: str, **more: Any) -> list[dict[str, Any]]:
    body = await book.call("operator_notes_query", keywords=list(keywords), **more)
    assert body["count"] == len(body["notes"])
    return list(body["notes"])


async def test_a_note_is_created_and_found(book: Notebook) -> None:
    body = await put(book, " Apply the coupon first ", category="shop")
    assert set(body) == STORE_FIELDS
    assert (body["action"], body["rev"], body["noteCount"], body["deduplicated"], body["evicted"]) == (
        *("created", 1, 1),
        *(False, 0),
    )
    [one] = await found(book, "checkout")
    assert set(one) == FOUND_FIELDS
    assert set(one["scoreBreakdown"]) == {"tag", "content", "relevance", "freshness"}
    assert (one["id"], one["content"], one["source"]) == (body["noteId"], "Apply the coupon first", "agent")
    assert (one["score"], one["scoreBreakdown"]["tag"], one["category"]) == (1.0, 1.0, "shop")


async def test_the_same_text_twice_is_one_note(book: Notebook) -> None:
    first = await put(book)
    again = await put(book, "apply THE coupon  first", tags=["till"])
    assert (again["action"], again["deduplicated"], again["noteId"], again["rev"]) == (
        *("updated", True),
        *(first["noteId"], 2),
    )
    [one] = (await book.call("operator_notes_list"))["notes"]
    assert one["tags"] == ["checkout", "till"]


async def test_an_update_keeps_what_it_leaves_out(book: Notebook) -> None:
    made = await put(book, category="shop")
    changed = await put(book, "New text", tags=["new"], id=made["noteId"], expectedRev=1)
    assert (changed["action"], changed["rev"]) == ("updated", 2)
    [one] = (await book.call("operator_notes_list"))["notes"]
    assert (one["content"], one["tags"], one["category"]) == ("New text", ["new"], "shop")
    assert (await put(book, "New text", tags=["new"], id=made["noteId"]))["action"] == "unchanged"


async def test_a_stale_revision_is_told_and_changes_nothing(book: Notebook) -> None:
    made = await put(book)
    before = await book.notes()
    body = await put(book, "New text", id=made["noteId"], expectedRev=9)
    assert (body["ok"], body["applied"], body["reasonCode"], body["currentRev"]) == (False, False, "rev_conflict", 1)
    assert await book.notes() == before
    assert records(book.data_dir)[-1].outcome.reason_code == "rev_conflict"


async def test_an_unknown_id_creates_nothing(book: Notebook) -> None:
    refused = await book.refused("operator_notes_store", content="x", tags=["t"], id="0" * 32)
    assert refused == (-32004, "operator_notes.not_found")
    assert await book.rows(operator_note) == []
    assert records(book.data_dir)[-1].outcome.reason_code == "operator_notes.not_found"
    body = await book.call("operator_notes_delete", id="0" * 32)
    assert (body["ok"], body["deleted"], body["id"]) == (True, False, "0" * 32)


async def test_the_users_notes_are_the_users(book: Notebook) -> None:
    made = await put(book)
    await book.write(operator_note.update().values(source="user", principal="*"))
    before = await book.notes()
    refused = await book.refused("operator_notes_store", content="x", tags=["t"], id=made["noteId"])
    assert refused == (-32035, "notes.user_owned")
    assert await book.refused("operator_notes_delete", id=made["noteId"]) == (-32035, "notes.user_owned")
    again = await put(book)
    assert (again["action"], again["noteId"], again["noteCount"]) == ("unchanged", made["noteId"], 0)
    assert await book.notes() == before
    [one] = await found(book, "checkout")
    assert one["source"] == "user"


async def test_a_note_is_deleted_by_its_id(book: Notebook) -> None:
    made = await put(book)
    assert (await book.call("operator_notes_delete", id=made["noteId"])) == {
        "ok": True,
        "deleted": True,
        "id": made["noteId"],
    }
    assert await book.rows(operator_note) == []


async def test_being_found_is_counted_and_makes_no_note_rank_higher(book: Notebook) -> None:
    await put(book)
    await put(book, "Another rule", tags=["checkout"])
    first = {one["id"]: one["score"] for one in await found(book, "coupon", minScore=0)}
    for _ in range(3):
        await found(book, "coupon")
    assert {one["id"]: one["score"] for one in await found(book, "coupon", minScore=0)} == pytest.approx(
        first, abs=1e-3
    )
    counts = {row["content"]: row["match_count"] for row in await book.rows(operator_note)}
    assert counts == {"Apply the coupon first": 5, "Another rule": 2}


async def test_a_low_score_is_left_out_and_filler_finds_nothing(book: Notebook) -> None:
    await put(book)
    assert await found(book, "coupon", "one", "two", "three") == []
    assert len(await found(book, "coupon", "zebra", "yak", "xerus", minScore=0.04)) == 1
    assert await found(book, "the", "a", minScore=0) == []


async def test_age_lowers_a_score_and_an_edit_renews_it(book: Notebook) -> None:
    made = await put(book)
    book.later(180 * DAY)
    [old] = await found(book, "checkout")
    assert old["score"] == pytest.approx(0.75, abs=0.001)
    await put(book, "Other words", id=made["noteId"])
    [fresh] = await found(book, "checkout")
    assert fresh["score"] == pytest.approx(1.0, abs=0.001)


async def test_pages_come_newest_first(book: Notebook) -> None:
    for number in range(3):
        await put(book, f"text {number}")
        book.later(1000)
    first = await book.call("operator_notes_list", limit=2)
    assert ([one["content"] for one in first["notes"]], first["total"], first["hasMore"]) == (
        ["text 2", "text 1"],
        *(3, True),
    )
    rest = await book.call("operator_notes_list", limit=2, offset=2)
    assert ([one["content"] for one in rest["notes"]], rest["hasMore"]) == (["text 0"], False)
    assert set(rest["notes"][0]) == LISTED_FIELDS
    assert (await book.call("operator_notes_list", offset=9))["hasMore"] is False


async def test_a_full_store_says_so(book: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_store, "PER_PRINCIPAL", 1)
    await put(book)
    assert await book.refused("operator_notes_store", content="x", tags=["t"]) == (-32003, "operator_notes.full")
    book.later(90 * DAY)
    made = await put(book, "x")
    assert (made["action"], made["evicted"], made["noteCount"]) == ("created", 1, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"content": "token=abc123"},
        {"content": "x", "tags": ["ghp_" + "a" * 36]},
        {"content": "x", "category": "pin: 1234"},
        {"content": f"use {SECRET}"},
    ],
)
async def test_no_argument_brings_a_secret_in(book: Notebook, given: dict[str, Any]) -> None:
    refused = await book.refused("operator_notes_store", **{"tags": ["t"], **given})
    assert refused == (-32602, "notes.secret_like")
    assert await book.rows(operator_note) == []


async def test_no_answer_has_another_principals_notes(book: Notebook) -> None:
    made = await put(book)
    book.become("ada")
    assert await found(book, "checkout", minScore=0) == []
    assert (await book.call("operator_notes_list"))["total"] == 0
    assert (await book.call("operator_notes_delete", id=made["noteId"]))["deleted"] is False
    refused = await book.refused("operator_notes_store", content="x", tags=["t"], id=made["noteId"])
    assert refused == (-32004, "operator_notes.not_found")
    assert (await put(book))["action"] == "created"


async def test_what_notes_say_stays_out_of_the_ledger(book: Notebook) -> None:
    await put(book, "walrus business", tags=["walrus"])
    await found(book, "walrus")
    assert not [one for one in records(book.data_dir) if "walrus" in str(one)]
