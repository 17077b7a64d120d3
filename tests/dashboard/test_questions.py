"""Agents' questions reach the person at the dashboard, and the person's answer reaches the agent once."""

from pathlib import Path

import pytest
from dashboard_kit import HOSTILE, Stand
from filled import ask

from nova_mcp.core import mailbox as box
from nova_mcp.core.mailbox import Mailbox


async def test_a_question_is_shown_and_answered(desk: Stand):
    ask(desk)
    async with desk.operator() as visitor:
        page = await visitor.page("/questions")
        assert "Log in to the shop." in page
        assert "https://shop.example/login" in page
        answer = await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "done", "note": " with my key "})
        told = await visitor.get(answer.headers["location"].removeprefix("/dashboard"))
        assert "told that it is done" in told.text
        assert "Nobody waits for you" in told.text
    reply = Mailbox(desk.settings.data_dir).reply_to("ab12cd34ef")
    assert reply is not None
    assert (reply.resolved, reply.by, reply.note) == (True, "local", "with my key")


async def test_a_person_may_say_that_it_is_not_done(desk: Stand):
    ask(desk)
    async with desk.operator() as visitor:
        await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "not_done"})
    reply = Mailbox(desk.settings.data_dir).reply_to("ab12cd34ef")
    assert reply is not None
    assert (reply.resolved, reply.note) == (False, None)


@pytest.mark.parametrize(
    "form",
    [
        {"id": "ab12cd34ff", "answer": "done"},
        {"id": "../../etc/x", "answer": "done"},
        {"id": "ab12cd34ef", "answer": "maybe"},
        {"id": "", "answer": ""},
    ],
)
async def test_what_answers_no_question_writes_nothing(desk: Stand, form: dict[str, str]):
    ask(desk)
    folder = desk.settings.data_dir / "human"
    before = sorted(path.name for path in folder.iterdir())
    async with desk.operator() as visitor:
        answer = await visitor.post("/questions", form)
        assert answer.status_code == 303
    assert sorted(path.name for path in folder.iterdir()) == before


async def test_the_second_answer_is_told_that_nobody_waits(desk: Stand):
    ask(desk)
    async with desk.operator() as visitor:
        await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "done"})
        answer = await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "not_done"})
        told = await visitor.get(answer.headers["location"].removeprefix("/dashboard"))
    assert "Nobody waits for this answer" in told.text
    reply = Mailbox(desk.settings.data_dir).reply_to("ab12cd34ef")
    assert reply is not None
    assert reply.resolved


async def test_of_two_answers_at_the_same_instant_one_counts_and_the_other_is_told(
    desk: Stand, monkeypatch: pytest.MonkeyPatch
):
    ask(desk)
    mailbox = Mailbox(desk.settings.data_dir)
    waiting = mailbox.waiting()
    # Both have looked before either of them has answered.
    monkeypatch.setattr(Mailbox, "waiting", lambda self: waiting)
    async with desk.operator() as visitor:
        await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "done"})
        answer = await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "not_done"})
        told = await visitor.get(answer.headers["location"].removeprefix("/dashboard"))
    assert "Nobody waits for this answer" in told.text
    reply = mailbox.reply_to("ab12cd34ef")
    assert reply is not None
    assert reply.resolved
    assert sorted(path.name for path in (desk.settings.data_dir / "human").iterdir()) == [
        "ab12cd34ef.done.json",
        "ab12cd34ef.json",
    ]


async def test_an_answer_that_came_too_late_is_not_said_to_have_arrived(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    ask(desk)
    mailbox = Mailbox(desk.settings.data_dir)
    waiting = mailbox.waiting()
    monkeypatch.setattr(Mailbox, "waiting", lambda self: waiting)
    mailbox.withdraw("ab12cd34ef")
    async with desk.operator() as visitor:
        answer = await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "done"})
        told = await visitor.get(answer.headers["location"].removeprefix("/dashboard"))
    assert "Nobody waits for this answer" in told.text


async def test_where_files_can_not_have_two_names_answers_arrive_too(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    def no_links(*_: object) -> None:
        raise PermissionError("this file system has no links")

    ask(desk)
    monkeypatch.setattr(Path, "hardlink_to", no_links)
    async with desk.operator() as visitor:
        await visitor.post("/questions", {"id": "ab12cd34ef", "answer": "done"})
    reply = Mailbox(desk.settings.data_dir).reply_to("ab12cd34ef")
    assert reply is not None
    assert reply.resolved


async def test_looking_at_questions_tidies_nothing_up(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    ask(desk)
    monkeypatch.setattr(box, "_lives", lambda process: False)
    async with desk.operator() as visitor:
        assert "Nobody waits for you" in await visitor.page("/questions")
    assert (desk.settings.data_dir / "human" / "ab12cd34ef.json").exists()


async def test_an_open_page_makes_a_person_reachable_for_half_a_minute(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    mailbox = Mailbox(desk.settings.data_dir)
    now = box._wall_ms()
    monkeypatch.setattr(box, "_wall_ms", lambda: now)
    assert not mailbox.attended()
    async with desk.operator() as visitor:
        assert (await visitor.post("/here")).json() == {"stopped": False, "waiting": 0}
        assert mailbox.attended()
        await visitor.post("/here")
        assert len(list((desk.settings.data_dir / "human").glob("watch-*"))) == 1
    monkeypatch.setattr(box, "_wall_ms", lambda: now + 30_001)
    assert not mailbox.attended()


async def test_only_a_signed_in_page_can_say_that_somebody_is_there(desk: Stand):
    async with desk.visitor() as visitor:
        assert (await visitor.post("/here", csrf=None)).status_code == 401
    async with desk.operator() as visitor:
        assert (await visitor.post("/here", csrf="wrong")).status_code == 403
        assert (await visitor.get("/here")).status_code == 404
    assert not Mailbox(desk.settings.data_dir).attended()


async def test_new_questions_come_without_a_reload_and_stay_text(desk: Stand):
    async with desk.operator() as visitor:
        assert (await visitor.get("/questions/live")).json()["ids"] == []
        ask(desk)
        news = (await visitor.get("/questions/live")).json()
    assert (news["ids"], news["waiting"]) == (["ab12cd34ef"], 1)
    assert HOSTILE not in news["list"]
    assert "&lt;script&gt;" in news["list"]
