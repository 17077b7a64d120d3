"""Forms of a real web framework: what Nova says about Django's admin against the rows in its database."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench.bounds import percent, upper_percent
from bench.django_server import ADMIN, PASSWORD
from bench.driving import Hand, Told, new_hand, nova_here
from bench.findings import bad_share
from bench.packages import NotInstalled, installed
from bench.tables import left_out, machine, remark, show, tell

VERSIONS = {
    "5.2": ("Django==5.2.*", "asgiref", "sqlparse"),
    "3.2": ("Django==3.2.*", "asgiref", "sqlparse", "pytz"),
}


@dataclass(frozen=True, slots=True)
class Lab:
    """One running admin and its database."""

    base_url: str
    database: Path

    def ask(self, query: str, *values: object) -> int:
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)) as db:
            return int(db.execute(query, values).fetchone()[0])

    def groups(self, name: str) -> int:
        return self.ask("select count(*) from auth_group where name = ?", name)

    def group_id(self, name: str) -> int:
        return self.ask("select id from auth_group where name = ?", name)

    def users(self, name: str) -> int:
        return self.ask("select count(*) from auth_user where username = ?", name)

    def sessions(self) -> int:
        return self.ask("select count(*) from django_session")

    def _change(self, query: str, *values: object) -> None:
        with closing(sqlite3.connect(self.database, timeout=10)) as db, db:
            db.execute(query, values)

    def end_sessions(self) -> None:
        self._change("delete from django_session")

    def remove_group(self, name: str) -> None:
        self._change("delete from auth_group where name = ?", name)

    def add_group(self, name: str) -> None:
        self._change("insert into auth_group (name) values (?)", name)


@contextmanager
def running_admin(version: str, needs: Sequence[str] = ()) -> Iterator[Lab]:
    folder = installed(f"django-{version}", *(needs or VERSIONS[version]))
    with tempfile.TemporaryDirectory() as place:
        database = Path(place) / "admin.db"
        server = Path(__file__).with_name("django_server.py")
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(server), str(database)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
        try:
            line = process.stdout.readline().strip() if process.stdout else ""
            if not line:
                raise NotInstalled(f"Django {version} does not run on this Python")
            yield Lab(line, database)
        finally:
            process.terminate()
            process.wait(timeout=10)
            if process.stdout:
                process.stdout.close()


async def _sign_in(hand: Hand, lab: Lab, password: str) -> Told:
    await hand.open(f"{lab.base_url}/admin/")
    await hand.call("nova.type_selector", {"selector": "#id_username", "text": ADMIN})
    await hand.call("nova.type_selector", {"selector": "#id_password", "text": password})
    await hand.call("nova.perceive")
    return await hand.act("nova.guarded_login")


async def _get_in(hand: Hand, lab: Lab) -> None:
    """Back in for what follows; an attempt taken for a repeat is named and made again, as its answer asks."""
    told = await _sign_in(hand, lab, PASSWORD)
    if told.claim == "duplicate":
        await hand.call("nova.perceive")
        told = await hand.act("nova.guarded_login", {"retryOf": told.body.get("earlierTransitionId")})
    if lab.sessions() == 0:
        raise RuntimeError(f"can't sign in any more: {told.reason_code}")


async def _login(hand: Hand, lab: Lab, password: str) -> tuple[Told, bool]:
    lab.end_sessions()
    told = await _sign_in(hand, lab, password)
    return told, lab.sessions() > 0


async def login_right(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    return await _login(hand, lab, PASSWORD)


async def login_wrong(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told, done = await _login(hand, lab, f"not {name}")
    await _get_in(hand, lab)
    return told, done


async def _group(hand: Hand, lab: Lab, name: str, button: str = "_save") -> Told:
    await hand.open(f"{lab.base_url}/admin/auth/group/add/")
    if name:
        await hand.call("nova.type_selector", {"selector": "#id_name", "text": name})
    return await hand.act("nova.guarded_submit_form", {"selector": f"input[name={button}]"})


async def group_saved(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told = await _group(hand, lab, name)
    return told, lab.groups(name) == 1


async def group_saved_and_continued(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told = await _group(hand, lab, name, "_continue")
    return told, lab.groups(name) == 1


async def group_saved_and_another(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told = await _group(hand, lab, name, "_addanother")
    return told, lab.groups(name) == 1


async def group_without_name(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told = await _group(hand, lab, "")
    return told, lab.groups("") > 0


async def group_name_taken(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    lab.add_group(name)
    told = await _group(hand, lab, name)
    return told, lab.groups(name) > 1


async def session_ended_meanwhile(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    await hand.open(f"{lab.base_url}/admin/auth/group/add/")
    await hand.call("nova.type_selector", {"selector": "#id_name", "text": name})
    lab.end_sessions()
    told = await hand.act("nova.guarded_submit_form", {"selector": "input[name=_save]"})
    done = lab.groups(name) == 1
    await _get_in(hand, lab)
    return told, done


async def group_gone_meanwhile(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    """Renamed after another person deleted it: the application redirects to its start page with a warning."""
    lab.add_group(name)
    await hand.open(f"{lab.base_url}/admin/auth/group/{lab.group_id(name)}/change/")
    await hand.call("nova.type_selector", {"selector": "#id_name", "text": f"{name} renamed"})
    lab.remove_group(name)
    told = await hand.act("nova.guarded_submit_form", {"selector": "input[name=_save]"})
    return told, lab.groups(f"{name} renamed") == 1


async def group_deleted(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    lab.add_group(name)
    await hand.open(f"{lab.base_url}/admin/auth/group/{lab.group_id(name)}/delete/")
    contract = {"selector": "#content form [type=submit]", "expect": ["text:was deleted successfully"]}
    told = await hand.act("nova.click_selector", contract)
    return told, lab.groups(name) == 0


async def _user(hand: Hand, lab: Lab, name: str, repeated: str) -> Told:
    await hand.open(f"{lab.base_url}/admin/auth/user/add/")
    for field, text in (("username", name), ("password1", "pass phrase 1"), ("password2", repeated)):
        await hand.call("nova.type_selector", {"selector": f"#id_{field}", "text": text})
    return await hand.act("nova.guarded_submit_form", {"selector": "input[name=_save]"})


async def user_saved(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told = await _user(hand, lab, name, "pass phrase 1")
    return told, lab.users(name) == 1


async def user_passwords_differ(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told = await _user(hand, lab, name, "pass phrase 2")
    return told, lab.users(name) == 1


async def user_name_taken(hand: Hand, lab: Lab, name: str) -> tuple[Told, bool]:
    told = await _user(hand, lab, ADMIN, "pass phrase 1")
    return told, lab.users(ADMIN) > 1


Scenario = Callable[[Hand, Lab, str], Awaitable[tuple[Told, bool]]]
# Signing in comes first; the rest needs it.
SCENARIOS: tuple[Scenario, ...] = (
    login_right,
    group_saved,
    group_saved_and_continued,
    group_saved_and_another,
    group_without_name,
    group_name_taken,
    session_ended_meanwhile,
    group_gone_meanwhile,
    group_deleted,
    user_saved,
    user_passwords_differ,
    user_name_taken,
    login_wrong,
)


@dataclass(frozen=True, slots=True)
class Result:
    version: str
    scenario: str
    told: Told
    done: bool


async def measure(version: str, rounds: int) -> list[Result]:
    results: list[Result] = []
    with running_admin(version) as lab:
        async with nova_here() as nova:
            hand = await new_hand(nova, "clerk")
            for number in range(rounds):
                for index, scenario in enumerate(SCENARIOS):
                    told, done = await scenario(hand, lab, f"n{number}-{index}")
                    results.append(Result(version, scenario.__name__, told, done))
    return results


def _show_version(version: str, results: Sequence[Result]) -> None:
    rows: list[list[object]] = []
    for scenario in SCENARIOS:
        mine = [one for one in results if one.scenario == scenario.__name__]
        if mine:
            claims = [one.told.claim for one in mine]
            counted = [claims.count(name) for name in ("verified", "failed", "unclear", "untouched", "duplicate")]
            reasons = sorted({(one.told.reason_code or "-").removeprefix("guarded_commit.") for one in mine})
            done = len([one for one in mine if one.done])
            rows.append([scenario.__name__, len(mine), done, *counted, ", ".join(reasons)])
    heads = ["scenario", "n", "done", "verified", "failed", "unclear", "untouched", "repeat", "reasons"]
    show(f"Claims against the database, Django {version}", heads, rows)


def show_results(results: Sequence[Result]) -> int:
    for version in VERSIONS:
        if mine := [one for one in results if one.version == version]:
            _show_version(version, mine)
    failures = [one for one in results if not one.done]
    successes = [one for one in results if one.done]
    false_success = [one for one in failures if one.told.claim == "verified"]
    false_alarm = [one for one in successes if one.told.claim == "failed"]
    unclear = [one for one in successes if one.told.claim not in ("verified", "failed")]
    summary = [
        [name, len(base), len(hits), percent(len(hits), len(base)), upper_percent(len(hits), len(base)), aim]
        for name, hits, base, aim in (
            ("false success", false_success, failures, "<= 0.5 %"),
            ("false alarm", false_alarm, successes, "<= 2 %"),
            ("success not claimed", unclear, successes, "<= 5 %"),
        )
    ]
    show("Django admin", ["", "n", "hits", "share", "upper 95 %", "aim"], summary)
    tell(bad_share("T1", "`verified` and not in the database, Django admin", len(false_success), len(failures), 0.005))
    tell(bad_share("T2", "failed and in the database, Django admin", len(false_alarm), len(successes), 0.02))
    tell(bad_share("T2", "in the database and not claimed, Django admin", len(unclear), len(successes), 0.05))
    return len(false_success)


def main(*, long: bool) -> int:
    print(f"django · {machine()}\n")
    started = time.perf_counter()
    results: list[Result] = []
    for version in VERSIONS:
        try:
            results.extend(anyio.run(measure, version, 20 if long else 3))
        except NotInstalled as missing:
            left_out(str(missing))
    remark(f"{len(results)} forms in {time.perf_counter() - started:.0f} s\n")
    return int(bool(show_results(results))) if results else 0
