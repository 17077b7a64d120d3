"""What there is to do on the practice site, what an agent would write down of it, and when the site calls it done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from bench.practice_site import Visit
from nova_mcp.core.values import JsonObject

# What a redesign does to what was learned. `kept`: the same controls in another place. `lost`: the learned selectors
# find nothing. `swapped`: they find something else. `relabelled`: they find the right control under another label.
Change = Literal["kept", "lost", "swapped", "relabelled"]


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing to do, in words a person would use: press what says so, or fill in what is called so."""

    do: Literal["press", "fill", "clear_layers"]
    label: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a task that becomes one entry: its wishes, and how it is recognised and proven."""

    entry: str
    type: str
    wishes: tuple[Wish, ...]
    signals: tuple[JsonObject, ...]
    verify: tuple[JsonObject, ...]
    # What the last step should show, for an agent that has no entry yet; and for a step that commits, always.
    expect: tuple[str, ...] = ()
    # How it is recognised in the second design, where that is another way.
    signals_after: tuple[JsonObject, ...] = ()
    commits: bool = False
    policy: str = "custom"

    @property
    def layer(self) -> bool:
        return self.type == "consent_cmp"

    @property
    def tried(self) -> bool:
        """Consent and signing in are never tried out; they are proven by hand."""
        return self.type not in ("consent_cmp", "login_wall")


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    path: str
    change: Change
    parts: tuple[Part, ...]
    done: Callable[[Visit], bool]
    # What a good visit uses, in this order, by what it means to the site.
    plan: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    # What the second design calls things that it calls otherwise.
    renamed: Mapping[str, str] = field(default_factory=dict)

    def strays(self, visit: Visit) -> tuple[str, ...]:
        """Everything from the first control on that was not the next one of the plan."""
        right = 0
        while right < min(len(visit.did), len(self.plan)) and visit.did[right] == self.plan[right]:
            right += 1
        return tuple(visit.did[right:])


def press(label: str) -> Wish:
    return Wish("press", label)


def fill(label: str, name: str) -> Wish:
    return Wish("fill", label, name)


LAYERS = Wish("clear_layers")


def dom(selector: str) -> JsonObject:
    return {"kind": "dom", "match": selector}


def says(text: str) -> JsonObject:
    return {"kind": "text", "match": text}


def at(path: str) -> JsonObject:
    fact = f"page.urlMatches@{quote(path, safe='')}"
    return {"type": "fact", "assertion": {"factKey": fact, "operator": "eq", "expected": True}}


def shown(selector: str) -> JsonObject:
    return {"type": "present", "selector": selector}


def reads(selector: str, text: str) -> JsonObject:
    fact = {"factKey": f"dom.{selector}@text", "operator": "eq", "expected": text}
    return {"type": "fact", "assertion": fact}


def ticked(selector: str) -> JsonObject:
    return {"type": "fact", "assertion": {"factKey": f"dom.{selector}@checked", "operator": "eq", "expected": True}}


def _did(*wanted: str) -> Callable[[Visit], bool]:
    return lambda visit: all(one in visit.did for one in wanted)


def _got(start: str) -> Callable[[Visit], bool]:
    return lambda visit: visit.asked_for(start)


def _gone(layer: str) -> tuple[JsonObject, ...]:
    return ({"type": "absent", "selector": layer}, {"type": "topmost_clickability_restored"})


def _consent(entry: str, layer: str, text: str) -> Part:
    return Part(entry, "consent_cmp", (LAYERS,), (dom(layer), says(text)), _gone(layer), policy="reject_preferred")


def _plan(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(","))


_VALUES = {"user": "ada", "pass": "over the hills"}

TASKS: Sequence[Task] = (
    Task(
        "refuse the cookie banner",
        "/news",
        "swapped",
        (_consent("cookies", "#cookie-box", "We use cookies"),),
        _did("refuse"),
        _plan("refuse"),
    ),
    Task(
        "past the newsletter to the price list",
        "/prices",
        "lost",
        (
            Part(
                "price-list",
                "custom",
                (press("No thanks"), press("Full price list")),
                (dom("#newsletter"), says("Join our newsletter")),
                (at("/prices/list"),),
                ("url:/prices/list",),
                (dom("#promo-layer"), says("Join our newsletter")),
            ),
        ),
        _got("/prices/list"),
        _plan("close, list"),
    ),
    Task(
        "menu in a menu to a report",
        "/office",
        "kept",
        (
            Part(
                "monthly-report",
                "nav_link",
                (press("Analytics"), press("Exports"), press("Monthly report")),
                (dom("#menu"), dom("#m-analytics")),
                (at("/report/monthly"),),
                ("url:/report/monthly",),
            ),
        ),
        _got("/report/monthly"),
        _plan("analytics, exports, monthly"),
    ),
    Task(
        "popover to the bills",
        "/team",
        "kept",
        (
            Part(
                "billing-history",
                "nav_link",
                (press("My account"), press("Billing history")),
                (dom("#bar"), dom("#avatar")),
                (at("/billing/history"),),
                ("url:/billing/history",),
            ),
        ),
        _got("/billing/history"),
        _plan("avatar, billing"),
    ),
    Task(
        "switch the language",
        "/start",
        "swapped",
        (
            Part(
                "deutsch",
                "custom",
                (press("Language"), press("Deutsch")),
                (dom("#lang-box"), dom("#lang")),
                (reads("#said", "Deutsch"),),
                ("text:Deutsch",),
            ),
        ),
        _did("open", "de"),
        _plan("open, de"),
    ),
    Task(
        "filter a catalogue",
        "/catalog",
        "swapped",
        (
            Part(
                "filter",
                "custom",
                (
                    fill("Lowest price", "lo"),
                    fill("Highest price", "hi"),
                    press("Blue"),
                    press("In stock"),
                    press("Cheapest first"),
                    press("Apply filters"),
                ),
                (dom("#filters"), says("Lowest price")),
                (at("/catalog/hits*"),),
                ("url:/catalog/hits*",),
            ),
        ),
        _got("/catalog/hits?lo=10&hi=50&blue=yes&stock=yes&by=price"),
        _plan("type:lo, type:hi, blue, stock, cheap, apply"),
        {"lo": "10", "hi": "50"},
    ),
    Task(
        "search",
        "/library",
        "lost",
        (
            Part(
                "search",
                "custom",
                (fill("Title or author", "q"), press("Search"), press("Books only"), press("Not lent out")),
                (dom("#searchbox"), says("Title or author")),
                (reads("#kind", "books"), reads("#state", "here")),
                ("text:here",),
            ),
        ),
        lambda visit: visit.asked_for("/library/hits?q=lovelace") and {"books", "lent"} <= set(visit.did),
        _plan("type:q, search, books, lent"),
        {"q": "lovelace"},
    ),
    Task(
        "switches behind a tab, saved",
        "/account",
        "swapped",
        (
            Part(
                "weekly-digest",
                "custom",
                (press("Notifications"), press("Weekly digest"), press("Quiet at night"), press("Save settings")),
                (dom("#settings"), dom("#tab-3")),
                (at("/account/kept/done"),),
                ("url:/account/kept/done",),
                commits=True,
            ),
        ),
        lambda visit: {"digest", "quiet", "store"} <= set(visit.did) and visit.asked_for("POST /account/kept"),
        _plan("tab Notifications, digest, quiet, store"),
    ),
    Task(
        "cookie wall, then sign in",
        "/club",
        "swapped",
        (
            _consent("wall", "#wall", "This club uses cookies"),
            Part(
                "sign-in",
                "login_wall",
                (fill("User name", "user"), fill("Password", "pass"), press("Sign in")),
                (dom("#signin"),),
                (at("/club/in/done"),),
                ("url:/club/in/done",),
                commits=True,
            ),
        ),
        lambda visit: (visit.sent.get("user"), visit.sent.get("pass")) == (_VALUES["user"], _VALUES["pass"]),
        _plan("refuse, type:user, type:pass, enter"),
        _VALUES,
    ),
    Task(
        "change the shown name",
        "/profile",
        "relabelled",
        (
            Part(
                "shown-name",
                "custom",
                (press("Edit profile"), fill("Shown name", "shown"), fill("Town", "town"), press("Keep it")),
                (dom("#card"), dom("#edit")),
                (reads("#now", "Countess"),),
                ("text:Countess",),
            ),
        ),
        _did("edit", "type:shown", "type:town", "keep"),
        _plan("edit, type:shown, type:town, keep"),
        {"shown": "Countess", "town": "London"},
        {"Keep it": "Apply changes"},
    ),
    Task(
        "a wizard of four steps",
        "/setup",
        "swapped",
        (
            Part(
                "new-project",
                "custom",
                (
                    fill("Project name", "project"),
                    press("Next"),
                    press("Small team"),
                    press("Next"),
                    fill("Owner", "owner"),
                    press("Remind me"),
                    press("Next"),
                    press("Next"),
                ),
                (dom("#wizard"), says("Step 1 of 4")),
                (shown("#ready"),),
                ("visible:#ready",),
            ),
        ),
        lambda visit: (
            visit.did.count("next") == 4 and {"small", "remind", "type:project", "type:owner"} <= set(visit.did)
        ),
        _plan("type:project, next, small, next, type:owner, remind, next, next"),
        {"project": "Engine", "owner": "Ada"},
    ),
    Task(
        "three pages down to a table",
        "/shop",
        "swapped",
        (
            Part(
                "hose-table",
                "spa_route",
                (press("Garden"), press("Hoses"), press("Specifications")),
                (dom("#shelves"), dom("#c-2")),
                (shown("#table"),),
                ("visible:#table",),
            ),
        ),
        _did("garden", "hoses", "specs"),
        _plan("garden, hoses, specs"),
    ),
)
