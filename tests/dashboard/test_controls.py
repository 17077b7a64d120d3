"""Stop, resume and kill switches: asked first, done once, and only by a form of this session."""

from pathlib import Path

import pytest
from dashboard_kit import HOSTILE, NOW, Stand

from nova_mcp.verification.kill_switches import Switch, parse_switch, set_switch, switches


def _set(desk: Stand) -> dict[str, Switch]:
    return {str(one.name): one for one in desk.db.read_sync(switches)}


async def _told(visitor, answer) -> str:
    assert answer.status_code == 303, answer.text
    return (await visitor.get(answer.headers["location"].removeprefix("/dashboard"))).text


async def test_stopping_asks_first_and_then_holds(desk: Stand):
    async with desk.operator() as visitor:
        assert "Stop all agents?" in await visitor.page("/controls/stop")
        assert not desk.settings.stop_file.exists()
        told = await _told(visitor, await visitor.post("/controls/stop", {"note": f"odd\nthings {HOSTILE}"}))
        assert "Every call is refused" in told
        assert desk.settings.stop_file.exists()
        text = desk.settings.stop_file.read_text()
        assert "(dashboard, local) odd things" in text
        assert text.count("\n") == 1
        page = await visitor.page("/")
        assert "The emergency stop is set" in page
        assert "<script>alert" not in await visitor.page("/controls")


async def test_resuming_asks_first_and_then_lifts(desk: Stand):
    desk.settings.stop_file.write_text("by hand")
    async with desk.operator() as visitor:
        assert "Let agents act again?" in await visitor.page("/controls/resume")
        assert desk.settings.stop_file.exists()
        assert "may act again" in await _told(visitor, await visitor.post("/controls/resume"))
        assert not desk.settings.stop_file.exists()
        assert "There was no stop" in await _told(visitor, await visitor.post("/controls/resume"))


async def test_a_stop_that_can_not_be_looked_at_is_shown_as_the_stop_it_counts_as(
    desk: Stand, monkeypatch: pytest.MonkeyPatch
):
    real = Path.exists

    def hidden(path: Path) -> bool:
        if path == desk.settings.stop_file:
            raise PermissionError("not yours")
        return real(path)

    monkeypatch.setattr(Path, "exists", hidden)
    async with desk.operator() as visitor:
        assert "The emergency stop is set" in await visitor.page("/")


async def test_a_note_is_kept_in_letters_that_every_store_holds(desk: Stand):
    async with desk.operator() as visitor:
        await visitor.post("/controls/switch", {"name": "apply.kill.global", "do": "set", "note": "a\0b"})
    assert _set(desk)["apply.kill.global"].note == "a\ufffdb"


async def test_a_second_stop_keeps_the_first_note(desk: Stand):
    async with desk.operator() as visitor:
        await visitor.post("/controls/stop", {"note": "first"})
        assert "stopped already" in await _told(visitor, await visitor.post("/controls/stop", {"note": "second"}))
    assert "first" in desk.settings.stop_file.read_text()


async def test_a_stop_that_can_not_be_written_does_not_look_like_one(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nova_mcp.dashboard.pages.controls.write_stop", full)
    async with desk.operator() as visitor:
        told = await _told(visitor, await visitor.post("/controls/stop"))
    assert "Nothing was stopped" in told


@pytest.mark.parametrize(
    ("family", "host", "name"),
    [
        ("closed_loop.commit", "", "closed_loop.commit.kill.global"),
        ("apply", "Shop.Example", "apply.kill.domain.shop.example"),
        ("closed_loop.commit", "bücher.example", "closed_loop.commit.kill.domain.xn--bcher-kva.example"),
    ],
)
async def test_a_switch_is_asked_for_set_and_lifted(desk: Stand, family: str, host: str, name: str):
    async with desk.operator() as visitor:
        asked = await visitor.get("/controls/switch", params={"family": family, "host": host, "note": HOSTILE})
        assert (asked.status_code, name in asked.text, HOSTILE in asked.text) == (200, True, False)
        assert "Your reason: &lt;script&gt;" in asked.text
        assert _set(desk) == {}
        form = {"name": name, "do": "set", "note": HOSTILE}
        assert f"Set: {name}" in await _told(visitor, await visitor.post("/controls/switch", form))
        assert (_set(desk)[name].note, _set(desk)[name].set_by, _set(desk)[name].set_at_ms) == (
            HOSTILE,
            "local (dashboard)",
            NOW,
        )
        assert "set already" in await _told(visitor, await visitor.post("/controls/switch", form))
        lift = await visitor.get("/controls/switch", params={"name": name, "do": "clear"})
        assert "Lift this switch?" in lift.text
        assert "Lifted" in await _told(visitor, await visitor.post("/controls/switch", {"name": name, "do": "clear"}))
        assert _set(desk) == {}


@pytest.mark.parametrize(
    ("family", "host"),
    [("apply", "https://shop.example/"), ("apply", "a b"), ("nothing", ""), ("", ""), ("apply", HOSTILE)],
)
async def test_what_is_no_switch_is_told_without_setting_anything(desk: Stand, family: str, host: str):
    async with desk.operator() as visitor:
        asked = await visitor.get("/controls/switch", params={"family": family, "host": host})
        assert (asked.status_code, "That is no host" in asked.text) == (400, True)
        done = await visitor.post("/controls/switch", {"name": f"{family}.kill.domain.{host}", "do": "set"})
        assert "no such switch" in await _told(visitor, done)
    assert _set(desk) == {}


ACTIONS = (
    ("/controls/stop", {}),
    ("/controls/resume", {}),
    ("/controls/switch", {"name": "apply.kill.global", "do": "clear"}),
)


@pytest.mark.parametrize(("path", "form"), ACTIONS)
async def test_nothing_is_done_for_a_stranger_a_foreign_page_or_a_wrong_form(
    desk: Stand, path: str, form: dict[str, str]
):
    desk.db.write_sync(set_switch, Switch(parse_switch("apply.kill.global"), NOW, "ada", ""))
    if path == "/controls/resume":
        desk.settings.stop_file.write_text("by hand")
    stopped = desk.settings.stop_file.exists()
    async with desk.visitor() as stranger:
        assert (await stranger.post(path, form, csrf="x")).status_code == 401
    async with desk.operator() as visitor:
        token = await visitor.csrf()
        assert (await visitor.post(path, form, csrf="wrong")).status_code == 403
        assert (await visitor.post(path, form, csrf=token, origin="http://127.0.0.1:8080")).status_code == 403
        assert (await visitor.post(path, form, csrf=token, origin=None)).status_code == 403
    assert desk.settings.stop_file.exists() == stopped
    assert list(_set(desk)) == ["apply.kill.global"]
