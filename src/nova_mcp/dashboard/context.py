"""What every page stands on: the program behind it, who looks at it, and what a page may answer."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from nova_mcp.calls.model import Answer, CallRequest, ResourceContent
from nova_mcp.core.values import Json
from nova_mcp.dashboard.data.feed import Feed
from nova_mcp.dashboard.sessions import Notice, Session, Sessions
from nova_mcp.evidence.rules import storable_text
from nova_mcp.memory.promotion.model import ConsentGates
from nova_mcp.server.http.dashboard_home import Home
from nova_mcp.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

AGENT: Final = "dashboard"


class Desk:
    """What handlers use: reading, writing, tools as the operator, and the clock."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.sessions = Sessions(home.ports.clock)
        self.feed = Feed()
        # By what the mailbox of questions knows this dashboard.
        self.view = secrets.token_hex(4)

    @property
    def settings(self) -> Settings:
        return self.home.settings

    @property
    def consent_gates(self) -> ConsentGates:
        return self.settings.learning.consent_gates

    def now_ms(self) -> int:
        return self.home.ports.clock.now_ms()

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await (await self.home.program()).database.read(fn, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await (await self.home.program()).database.write(fn, *args, **kwargs)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Answer:
        """A tool call as the operator: it passes the same gates and leaves the same record as an agent's."""
        request = CallRequest(tool, {**arguments, "agentId": AGENT}, self.home.keys.operator)
        return await (await self.home.program()).call(request)

    async def resource(self, uri: str, principal: str) -> ResourceContent | None:
        return await (await self.home.program()).read_resource(uri, principal)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a signed-in person; `form` is what a POST brought."""

    desk: Desk
    session: Session
    request: Request
    form: Mapping[str, str] = field(default_factory=dict)

    def query(self, name: str, limit: int = 300) -> str:
        """A value of the address, or nothing; what is too long is nothing anybody asked for."""
        text = self.request.query_params.get(name, "").strip()
        return text if len(text) <= limit else ""

    def part(self, name: str, limit: int = 200) -> str:
        """A part of the path; what nobody could have stored names nothing, and not every store may be asked for it."""
        text = str(self.request.path_params[name])
        return text if text.isprintable() and len(text) <= limit else ""

    def field(self, name: str, limit: int = 500) -> str:
        return self.form.get(name, "").strip()[:limit]

    def said(self, name: str, limit: int = 500) -> str:
        """What somebody wrote in their own words, as every store can hold it."""
        return storable_text(self.field(name, limit))


@dataclass(frozen=True, slots=True)
class View:
    """A template and what it shows."""

    template: str
    values: Mapping[str, object] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Leave:
    """After an action: go to a page below the root and say there what happened."""

    to: str
    notice: Notice | None = None


@dataclass(frozen=True, slots=True)
class Confirm:
    """A question before something is done; the form posts `fields` to `action`."""

    title: str
    lines: tuple[str, ...]
    action: str
    button: str
    back: str
    fields: Mapping[str, str] = field(default_factory=dict)
    danger: bool = False

    def view(self) -> View:
        return View("confirm.html", {"title": self.title, "ask": self})


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a page that is made anew while the page is open."""

    name: str
    template: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fragments:
    """Pieces of a page, made by the same templates, and figures about them; sent as JSON."""

    parts: tuple[Part, ...] = ()
    figures: Mapping[str, Json] = field(default_factory=dict)


def missing(what: str) -> View:
    """The answer to an address that names nothing."""
    return View("missing.html", {"title": "Not found", "what": what}, 404)


Outcome = View | Leave | Fragments | Response
Handler = Callable[[Visit], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the menu."""

    group: str
    words: str


@dataclass(frozen=True, slots=True)
class Place:
    """An address below the root; `section` is the menu line that is lit while one is there."""

    path: str
    section: str
    get: Handler | None = None
    post: Handler | None = None
    menu: Entry | None = None
