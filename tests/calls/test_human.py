"""Asking a person: at once when nobody is there, otherwise until they answer, holding nothing meanwhile."""

import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from nova_mcp.browser.targets.tab import Tab, TabHost
from nova_mcp.core.leases import Lease
from nova_mcp.core.mailbox import Mailbox, this_process
from nova_mcp.core.questions import Process, Question, Reply
from nova_mcp.core.redaction import CLAIM_TOKEN_PREFIX, REDACTED
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.sequence import run_sequence
from nova_mcp.tools.spec import Result, TargetParams, tool
from nova_mcp.tools.system.ask_human import ask_human

OWNER = ("local", "default")
DEAD = Process(pid=2**22 + 1, began_ms=1)
DONE = Reply(resolved=True, by="anna", note="code was 42")


@tool(title="Touch", effect="act", bundles=("browser_automation",))
async def touch(ctx: ToolContext, p: TargetParams) -> Result:
    """Touches the page."""
    return Result()


@pytest.fixture
async def rig(make_rig: Callable[..., Any]) -> Any:
    made = await make_rig(ask_human, touch, run_sequence)
    tab = Tab("tab_1", "A", OWNER, cast(TabHost, None), made.clock)
    tab.url = "https://shop.test/login?token=abc"
    made.browser.targets._tabs["tab_1"] = tab
    made.browser.targets._active[OWNER] = "tab_1"
    return made


def question(question_id: str, asker: Process | None = None, asked_at_ms: int = 1) -> Question:
    return Question(
        id=question_id,
        kind="login",
        why="log in",
        agent_id="default",
        asked_at_ms=asked_at_ms,
        expires_at_ms=2,
        asker=asker or this_process(),
    )


@asynccontextmanager
async def asking(rig: Any, **arguments: Any) -> AsyncIterator[tuple[Question, list[Any], Any]]:
    """A call that waits for a person while somebody is there."""
    mailbox = Mailbox(rig.settings.data_dir)
    answers: list[Any] = []
    shown = anyio.Event()
    told: list[str] = []

    async def tell(done: float, total: float | None, message: str) -> None:
        told.append(message)
        shown.set()

    async def run() -> None:
        answers.append(await rig.call("nova.ask_human", {"why": "log in, please", **arguments}, progress=tell))

    with mailbox.attending():
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await shown.wait()
            (waiting,) = mailbox.questions()
            yield waiting, answers, group
        assert mailbox.questions() == []
        assert [path.name for path in (rig.settings.data_dir / "human").iterdir() if "watch" not in path.name] == []
        assert set(told) == {"waiting for a person"}


async def test_nobody_there_is_told_at_once_with_the_way_to_log_in(rig: Any) -> None:
    answer = await rig.call("nova.ask_human", {"why": "log in", "timeoutMs": 600_000})
    body = answer.structured
    assert answer.is_error
    assert (body["status"], body["errorCode"], body["reasonCode"]) == ("failed", -32002, "human.unavailable")
    assert body["resolved"] is False
    assert "nova login shop.test" in body["hint"]
    (record,) = await rig.records()
    assert (record.outcome.kind, record.outcome.reason_code) == ("failed", "human.unavailable")


async def test_a_person_says_done(rig: Any) -> None:
    async with asking(rig, kind="mfa") as (waiting, answers, _):
        assert (waiting.kind, waiting.why, waiting.target_id) == ("mfa", "log in, please", "tab_1")
        assert waiting.url == "https://shop.test/login?token"
        assert Mailbox(rig.settings.data_dir).reply(waiting.id, DONE)
    body = answers[0].structured
    assert (body["ok"], body["status"], body["resolved"]) == (True, "ok", True)
    assert (body["by"], body["note"]) == ("anna", "code was 42")


async def test_no_secret_stands_in_a_question(tmp_path: Path, make_rig: Callable[..., Any]) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('shop = {value = "correct horse battery", hosts = ["shop.test"]}\n')
    secrets.chmod(0o600)
    rig = await make_rig(ask_human)
    token = f"{CLAIM_TOKEN_PREFIX}{'ab' * 12}"
    async with asking(rig, why=f"type correct horse battery, claim {token}") as (waiting, _, _):
        assert waiting.why == f"type «secret:shop», claim {REDACTED}"
        Mailbox(rig.settings.data_dir).reply(waiting.id, DONE)


async def test_a_person_says_that_it_is_not_done(rig: Any) -> None:
    async with asking(rig) as (waiting, answers, _):
        Mailbox(rig.settings.data_dir).reply(waiting.id, Reply(resolved=False, by="anna"))
    body = answers[0].structured
    assert (body["ok"], body["status"], body["resolved"]) == (False, "partial", False)
    assert body["reasonCode"] == "human.not_done"
    assert not answers[0].is_error


async def test_a_wait_that_is_over_fails(rig: Any) -> None:
    async with asking(rig, timeoutMs=1000) as (_, answers, _):
        pass
    assert answers[0].structured["reasonCode"] == "human.unavailable"
    assert answers[0].structured["resolved"] is False


async def test_a_window_is_enough_for_somebody_to_be_there(make_rig: Callable[..., Any]) -> None:
    rig = await make_rig(ask_human, browser={"headed": True})
    answer = await rig.call("nova.ask_human", {"why": "log in", "timeoutMs": 1000})
    assert "within 1000 ms" in answer.structured["message"]
    assert "nova login <site>" in answer.structured["hint"]


async def test_the_tab_is_free_and_stays_the_agents_while_a_person_works_in_it(rig: Any) -> None:
    tab = rig.browser.targets._tabs["tab_1"]
    tab.lease = Lease(OWNER, rig.clock.now + 5000)
    async with asking(rig) as (waiting, _, _):
        assert not tab.lock.held
        assert tab.lease.expires_at_ms > rig.clock.now + 5000
        assert (await rig.call("nova.touch")).structured["ok"] is True
        Mailbox(rig.settings.data_dir).reply(waiting.id, DONE)


async def test_a_tab_of_another_agent_is_not_asked_about(rig: Any) -> None:
    rig.browser.targets._tabs["tab_1"].lease = Lease(("local", "eve"), rig.clock.now + 5000)
    answer = await rig.call("nova.ask_human", {"why": "log in", "targetId": "tab_1"})
    assert answer.structured["reasonCode"] == "claim.owner_mismatch"


async def test_a_client_that_leaves_takes_its_question_along(rig: Any) -> None:
    async with asking(rig) as (_, answers, group):
        group.cancel_scope.cancel()
    assert answers == []
    (record,) = await rig.records()
    assert record.outcome.kind == "cancelled"


async def test_the_emergency_stop_ends_the_wait(rig: Any) -> None:
    async with asking(rig) as (_, answers, group):
        group.start_soon(rig.pipeline.running.watch_stop_file, rig.settings.stop_file)
        rig.settings.stop_file.write_text("stop")
        with anyio.fail_after(30):
            while not answers:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert answers[0].structured["reasonCode"] == "safety.emergency_stop"


async def test_asking_can_be_a_step_and_other_changes_wait_for_the_person(rig: Any) -> None:
    mailbox = Mailbox(rig.settings.data_dir)
    shown = anyio.Event()

    async def tell(done: float, total: float | None, message: str) -> None:
        shown.set()

    steps = [{"tool": "ask_human", "args": {"why": "log in"}}, {"tool": "touch"}]
    with mailbox.attending():
        async with anyio.create_task_group() as group:

            async def run() -> None:
                answer = await rig.call("nova.run_sequence", {"steps": steps}, progress=tell)
                assert answer.structured["status"] == "ok"

            group.start_soon(run)
            await shown.wait()
            tab = rig.browser.targets._tabs["tab_1"]
            assert not tab.lock.held
            assert tab.turns.held
            mailbox.reply(mailbox.questions()[0].id, DONE)


# -- the folder


def test_letters_are_private(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    mailbox.post(question("aaaaaaaa"))
    mailbox.reply("aaaaaaaa", DONE)
    folder = tmp_path / "human"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_the_oldest_question_comes_first_and_an_answered_one_is_gone(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    for number, question_id in enumerate(("cccccccc", "aaaaaaaa", "bbbbbbbb")):
        mailbox.post(question(question_id, asked_at_ms=number))
    assert [one.id for one in mailbox.questions()] == ["cccccccc", "aaaaaaaa", "bbbbbbbb"]
    assert mailbox.reply("cccccccc", DONE)
    assert [one.id for one in mailbox.questions()] == ["aaaaaaaa", "bbbbbbbb"]
    assert mailbox.reply_to("cccccccc") == DONE


def test_what_nobody_waits_for_is_not_shown_and_can_not_be_answered(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    mailbox.post(question("aaaaaaaa", DEAD))
    assert mailbox.questions() == []
    assert not mailbox.reply("aaaaaaaa", DONE)
    assert list((tmp_path / "human").iterdir()) == []


def test_a_view_that_died_is_nobody(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    assert not mailbox.attended()
    (tmp_path / "human").mkdir()
    (tmp_path / "human" / "watch-4194305-00.json").write_text(DEAD.model_dump_json(by_alias=True))
    assert not mailbox.attended()
    with mailbox.attending():
        assert mailbox.attended()
    assert not mailbox.attended()
    assert list((tmp_path / "human").iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"resolved":"yes","by":"x"}', '{"resolved":true}', "x" * 100_000])
def test_a_file_that_says_nothing_is_no_answer(tmp_path: Path, content: str) -> None:
    mailbox = Mailbox(tmp_path)
    mailbox.post(question("aaaaaaaa"))
    (tmp_path / "human" / "aaaaaaaa.done.json").write_text(content)
    (tmp_path / "human" / "bbbbbbbb.json").write_text(content)
    assert mailbox.reply_to("aaaaaaaa") is None
    assert [one.id for one in mailbox.questions()] == ["aaaaaaaa"]


def test_answers_that_came_too_late_are_cleared_away(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    mailbox.post(question("aaaaaaaa"))
    mailbox.reply("aaaaaaaa", DONE)
    (tmp_path / "human" / "aaaaaaaa.json").unlink()
    mailbox.post(question("bbbbbbbb"))
    assert [path.name for path in (tmp_path / "human").iterdir()] == ["bbbbbbbb.json"]
