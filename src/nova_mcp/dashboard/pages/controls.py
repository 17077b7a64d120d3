"""Emergency stop and kill switches: what the dashboard changes besides reviews, each after a question."""

import logging
from dataclasses import dataclass
from typing import Final

import anyio.to_thread
from sqlalchemy import Connection

from nova_mcp.core.stop_file import remove_stop, write_stop
from nova_mcp.dashboard.context import Confirm, Desk, Entry, Leave, Place, View, Visit
from nova_mcp.dashboard.formatting import plain
from nova_mcp.dashboard.sessions import Notice
from nova_mcp.verification.kill_switches import (
    Switch,
    SwitchFamily,
    SwitchName,
    UnknownSwitch,
    clear_switch,
    parse_switch,
    set_switch,
    switches,
)

log = logging.getLogger(__name__)

NOTE_CHARS: Final = 500
_FAMILIES: Final[dict[SwitchFamily, str]] = {
    "closed_loop.commit": "commits (sending, submitting, paying, deleting, signing in)",
    "apply": "applying what was learned",
}


@dataclass(frozen=True, slots=True)
class SetSwitch:
    """A switch that is set, in words."""

    name: str
    what: str
    where: str
    set_at_ms: int
    set_by: str
    note: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The emergency stop: its note says since when and why."""

    note: str


def set_switches(conn: Connection) -> tuple[SetSwitch, ...]:
    return tuple(
        SetSwitch(
            name=str(one.name),
            what=_FAMILIES[one.name.family],
            where="everywhere" if one.name.scope is None else f"on {plain(one.name.scope)} and below",
            set_at_ms=one.set_at_ms,
            set_by=plain(one.set_by),
            note=plain(one.note),
        )
        for one in switches(conn)
    )


def stop_of(desk: Desk) -> Stop | None:
    path = desk.settings.stop_file
    try:
        with path.open("rb") as file:
            return Stop(plain(file.read(NOTE_CHARS).decode("utf-8", "replace").strip()))
    except FileNotFoundError:
        return None
    except OSError:
        return Stop("its note can't be read")


async def shown(visit: Visit) -> View:
    return await _controls(visit)


async def _controls(visit: Visit, notice: Notice | None = None) -> View:
    stop = await anyio.to_thread.run_sync(stop_of, visit.desk)
    found = await visit.desk.read(set_switches)
    values = {"stop": stop, "switches": found, "families": list(_FAMILIES.items()), "note_chars": NOTE_CHARS}
    told = {} if notice is None else {"notice": notice}
    return View("controls.html", {"title": "Controls", **values, **told}, 200 if notice is None else 400)


# -- the emergency stop ----------------------------------------------------------------------------------------------


async def ask_stop(visit: Visit) -> View:
    return View("stop.html", {"title": "Stop all agents?", "note_chars": NOTE_CHARS})


async def do_stop(visit: Visit) -> Leave:
    reason = " ".join(visit.said("note", NOTE_CHARS).split())
    said = f"(dashboard, {visit.session.principal}) {reason}".strip()
    try:
        fresh = await anyio.to_thread.run_sync(write_stop, visit.desk.settings.stop_file, said)
    except OSError as error:
        # A stop that did not take hold must not look like one.
        return Leave("/controls", Notice(f"The stop could not be written: {error}. Nothing was stopped.", "bad"))
    log.warning("emergency stop set from the dashboard by %s", visit.session.principal)
    return Leave(
        "/controls", Notice("Stopped. Every call is refused until you resume." if fresh else "It was stopped already.")
    )


async def ask_resume(visit: Visit) -> View:
    return Confirm(
        title="Let agents act again?",
        lines=(
            "The emergency stop is lifted: agents may act again at once.",
            "Calls that were cancelled stay cancelled.",
        ),
        action="/controls/resume",
        button="Resume",
        back="/controls",
    ).view()


async def do_resume(visit: Visit) -> Leave:
    try:
        lifted = await anyio.to_thread.run_sync(remove_stop, visit.desk.settings.stop_file)
    except OSError as error:
        return Leave("/controls", Notice(f"The stop could not be lifted: {error}.", "bad"))
    log.warning("emergency stop lifted from the dashboard by %s", visit.session.principal)
    return Leave("/controls", Notice("Resumed. Agents may act again." if lifted else "There was no stop."))


# -- kill switches ---------------------------------------------------------------------------------------------------


def _named(family: str, host: str, name: str) -> SwitchName | None:
    """The switch that is meant: by its name, or by what it turns off and where."""
    try:
        return parse_switch(name or f"{family}.kill.{f'domain.{host}' if host else 'global'}")
    except UnknownSwitch:
        return None


async def ask_switch(visit: Visit) -> View:
    wanted = _named(visit.query("family"), visit.query("host"), visit.query("name"))
    if wanted is None:
        return await _controls(visit, Notice("That is no host: write it alone, like shop.example.", "bad"))
    where = "everywhere" if wanted.scope is None else f"on {plain(wanted.scope)} and everything below it"
    clearing = visit.query("do") == "clear"
    note = "" if clearing else visit.query("note", NOTE_CHARS)
    lines = (
        (f"From the next call on, every server on this store allows {_FAMILIES[wanted.family]} again {where}.",)
        if clearing
        else (
            f"From the next call on, every server on this store refuses {_FAMILIES[wanted.family]} {where}.",
            "Looking and reading go on. Lifting the switch takes effect as quickly.",
            *((f"Your reason: {plain(note)}",) if note else ()),
        )
    )
    return Confirm(
        title="Lift this switch?" if clearing else "Set this switch?",
        lines=(*lines, str(wanted)),
        action="/controls/switch",
        button="Lift" if clearing else "Switch off",
        back="/controls",
        fields={
            "name": str(wanted),
            "do": "clear" if clearing else "set",
            "note": note,
        },
        danger=not clearing,
    ).view()


async def do_switch(visit: Visit) -> Leave:
    wanted = _named("", "", visit.field("name") or "?")
    if wanted is None or visit.field("do") not in ("set", "clear"):
        return Leave("/controls", Notice("There is no such switch.", "bad"))
    if visit.field("do") == "clear":
        was_set = await visit.desk.write(clear_switch, wanted)
        log.warning("kill switch %s lifted from the dashboard", wanted)
        return Leave("/controls", Notice(f"Lifted: {wanted}." if was_set else f"It was not set: {wanted}."))
    by = f"{visit.session.principal} (dashboard)"
    fresh = await visit.desk.write(set_switch, Switch(wanted, visit.desk.now_ms(), by, visit.said("note", NOTE_CHARS)))
    log.warning("kill switch %s set from the dashboard", wanted)
    return Leave("/controls", Notice(f"Set: {wanted}." if fresh else f"It was set already: {wanted}."))


PLACES = (
    Place("/controls", "controls", get=shown, menu=Entry("System", "Controls")),
    Place("/controls/stop", "controls", get=ask_stop, post=do_stop),
    Place("/controls/resume", "controls", get=ask_resume, post=do_resume),
    Place("/controls/switch", "controls", get=ask_switch, post=do_switch),
)
