"""What a page says after a form was sent: wordings and markup in two halves, and the pages that show them."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final, Literal

Half = Literal["open", "aside"]
# Where the answer leads: a list of records, a start page, the record itself, a sign-in form, or the same form again.
Place = Literal["list", "home", "record", "login", "same"]
SAVED: Final = "saved"
SILENT: Final = "silent"
HALVES: Final[tuple[Half, ...]] = ("open", "aside")
PLACES: Final[Mapping[str, tuple[Place, ...]]] = {
    "gone": ("list", "home"),
    "permission": ("list", "home", "same"),
    "expired": ("login", "home"),
    "conflict": ("same", "list", "record"),
    "warning": ("list", "same", "home"),
    SAVED: ("list", "same", "record", "home"),
    SILENT: ("same", "same", "list"),
}
# A message stands in the document, is put in while it loads, or comes from a script soon after.
_LATE_MS: Final = ((None, 70), (0, 20), (120, 10))


@dataclass(frozen=True, slots=True)
class Wording:
    half: Half
    case: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The markup around a message; `kind` says which kind of message it is made for."""

    half: Half
    kind: Literal["good", "bad"]
    name: str
    html: str


_DATA: Final = json.loads((Path(__file__).parent / "wordings.json").read_text(encoding="utf-8"))
WORDINGS: Final = tuple(Wording(**entry) for entry in _DATA["wordings"])
FRAMES: Final = tuple(Frame(**entry) for entry in _DATA["frames"])


@dataclass(frozen=True, slots=True)
class Flash:
    """One answer of the server: what it did, where it leads, and what it says there; a silent one has no wording."""

    case: str
    half: Half
    place: Place
    done: bool
    wording: int | None = None
    frame: int | None = None
    late_ms: int | None = None

    @property
    def name(self) -> str:
        return f"{self.case}, {self.half}"

    def query(self) -> dict[str, object]:
        parts = {"place": self.place, "done": int(self.done), "w": self.wording, "f": self.frame, "late": self.late_ms}
        return {name: value for name, value in parts.items() if value is not None}

    def words(self) -> str:
        """For a table: what was said, in which markup, and where."""
        said = "no message" if self.wording is None else WORDINGS[self.wording].text
        markup = "" if self.frame is None else f" ({FRAMES[self.frame].name})"
        return f"{said}{markup}, {self.place}, {'done' if self.done else 'not done'}"


def draw_flash(case: str, half: Half, dice: random.Random) -> Flash:
    """A wording and a markup of the same half.

    Of the silent ones that come back to the same form half did nothing. One that leads on without a word did what was
    asked: from a site that leads on, says nothing and did nothing no page can tell the difference.
    """
    place = dice.choice(PLACES[case])
    if case == SILENT:
        return Flash(case, half, place, place != "same" or dice.random() < 0.5)
    good = case == SAVED
    words = [at for at, one in enumerate(WORDINGS) if (one.half, one.case) == (half, case)]
    frames = [at for at, one in enumerate(FRAMES) if (one.half, one.kind) == (half, "good" if good else "bad")]
    late = dice.choices([ms for ms, _ in _LATE_MS], [weight for _, weight in _LATE_MS])[0]
    return Flash(case, half, place, good, dice.choice(words), dice.choice(frames), late)


def message_html(query: Mapping[str, str]) -> str:
    """The message of an answer as it stands in its page, or the script that brings it."""
    if "w" not in query:
        return ""
    html = FRAMES[int(query["f"])].html.replace("{t}", escape(WORDINGS[int(query["w"])].text, quote=False))
    if "late" not in query:
        return html
    quoted = json.dumps(html).replace("</", "<\\/")
    show = f"document.getElementById('late').innerHTML={quoted}"
    wait = int(query["late"])
    run = show if wait == 0 else f"setTimeout(()=>{{{show}}},{wait})"
    return f"<div id='late'></div><script>addEventListener('load',()=>{{{run}}})</script>"


_LIST: Final = """<h1>Entries</h1><table><tr><th>Name</th><th></th></tr>
<tr><td>Alpha</td><td><a href="/entries/1">Edit</a></td></tr>
<tr><td>Beta</td><td><a href="/entries/2">Edit</a></td></tr>
<tr><td>Gamma</td><td><a href="/entries/3">Edit</a></td></tr></table>"""
_HOME: Final = """<h1>Start</h1><p>Choose where to go.</p><ul><li><a href="/entries">Entries</a></li>
<li><a href="/reports">Reports</a></li></ul>"""
_RECORD: Final = """<h1>Entry</h1><dl><dt>Comment</dt><dd>as agreed</dd></dl>
<p><a href="/entries">All entries</a></p>"""
_SIGN_IN: Final = """<h1>Sign in</h1><form method="post" action="/do/again/x"><p><label>User name
<input name="username" autocomplete="username"></label></p><p><label>Password <input name="password" type="password"
autocomplete="current-password"></label></p><p><button>Sign in</button></p></form>"""
_BODIES: Final[Mapping[str, str]] = {"list": _LIST, "home": _HOME, "record": _RECORD, "login": _SIGN_IN}


def answer_page(query: Mapping[str, str]) -> bytes:
    """The page a redirect leads to, for every place but the form itself."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Office</title></head><body>'
        '<header><nav><a href="/">Office</a> <a href="/help">Help</a></nav></header>'
        f"<main>{message_html(query)}{_BODIES[query['place']]}</main></body></html>"
    ).encode()


def wording_cases() -> Sequence[str]:
    """Everything that can be said, and saying nothing."""
    return tuple(PLACES)
