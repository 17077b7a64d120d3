"""Puts the pages together: addresses, sessions, forms and errors; an ASGI application that the HTTP server mounts."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from nova_mcp.core.mailbox import Mailbox
from nova_mcp.core.stop_file import stop_requested
from nova_mcp.dashboard import reviews, sign_in
from nova_mcp.dashboard.context import Desk, Fragments, Handler, Leave, Outcome, Place, View, Visit, missing
from nova_mcp.dashboard.pages import (
    activity,
    call,
    calls,
    controls,
    memory_routes,
    questions,
    receipts,
    statistics,
    work_routes,
)
from nova_mcp.dashboard.rendering import STATIC, Renderer
from nova_mcp.dashboard.request_checks import Guarded, cookie_name, from_here, ours, read_form
from nova_mcp.dashboard.sessions import Session
from nova_mcp.dashboard.sign_in import SignIn, theme_of
from nova_mcp.errors import NovaError
from nova_mcp.server.http.dashboard_home import ROOT, Home, admit_connection
from nova_mcp.storage.errors import StoreUnavailable

log = logging.getLogger(__name__)

# The order of the menu's groups; within a group, lines stand in the order of their places.
GROUPS: Final = ("Now", "Memory", "Work", "System")
PLACES: Final[tuple[Place, ...]] = (
    *activity.PLACES,
    *calls.PLACES,
    *call.PLACES,
    *receipts.PLACES,
    *questions.PLACES,
    *statistics.PLACES,
    *controls.PLACES,
    *memory_routes.KNOWLEDGE,
    *reviews.PLACES,
    *memory_routes.PLACES,
    *work_routes.PLACES,
    *sign_in.PLACES,
)

Endpoint = Callable[[Request], Awaitable[Response]]


def build(home: Home) -> ASGIApp:
    """The whole dashboard, below its root."""
    return Guarded(Starlette(routes=_Front(Desk(home)).routes(PLACES)))


class _Front:
    """What stands between a request and the page that answers it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._renderer = Renderer()
        self._sign_in = SignIn(desk, self._renderer)

    def routes(self, places: Iterable[Place]) -> list[Route]:
        shown = tuple(places)
        self._menu = menu_of(shown)
        return [
            Route(f"{ROOT}/login", self._sign_in.login, methods=["GET", "POST"]),
            Route(f"{ROOT}/enter", self._sign_in.enter, methods=["GET", "POST"]),
            Route(f"{ROOT}/static/{{stamp}}/{{name}}", self._static, methods=["GET"]),
            Route(ROOT, self._root, methods=["GET"]),
            *(
                Route(f"{ROOT}{place.path}", self._guarded(place), methods=[name for name, _ in _ways(place)])
                for place in shown
            ),
            Route(f"{ROOT}/{{rest:path}}", self._guarded(Place("", "", get=_nothing)), methods=["GET"]),
        ]

    async def _root(self, request: Request) -> Response:
        return RedirectResponse(f"{ROOT}/", 303)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC or request.path_params["stamp"] != self._renderer.stamp:
            return Response("not found", 404, media_type="text/plain")
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(self._renderer.static[name], media_type=STATIC[name], headers=kept)

    def _guarded(self, place: Place) -> Endpoint:
        ways = dict(_ways(place))

        async def answer(request: Request) -> Response:
            session = self._desk.sessions.find(request.cookies.get(cookie_name(request)))
            if session is None:
                return await self._stranger(request)
            admit_connection(request.scope, session.principal)
            handler = ways["GET" if request.method == "HEAD" else request.method]
            visit = await self._visit(request, session)
            try:
                outcome = visit if isinstance(visit, View) else await self._run(handler, visit)
                return await self._answered(request, session, place, outcome)
            except Exception:
                # The top of a page: one that breaks must not take the server along.
                log.exception("the page %s broke", request.url.path)
                broken = _refusal(500, "This page broke. The server's log says why.")
                return await self._answered(request, session, place, broken)

        return answer

    async def _stranger(self, request: Request) -> Response:
        if request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "text/html"):
            return RedirectResponse(f"{ROOT}/login", 303)
        return Response("Sign in first.", 401, media_type="text/plain")

    async def _visit(self, request: Request, session: Session) -> Visit | View:
        """The request as a page may see it; a refusal for a form that none of our pages has sent."""
        if request.method != "POST":
            return Visit(self._desk, session, request)
        if (foreign := from_here(request.headers)) is not None:
            return _refusal(403, foreign.why)
        if (form := await read_form(request)) is None:
            return _refusal(400, "That is not a form of this dashboard.")
        if not ours(session, form, request.headers):
            return _refusal(403, "This form is out of date. Go back, load the page again and repeat it.")
        return Visit(self._desk, session, request, form)

    async def _run(self, handler: Handler, visit: Visit) -> Outcome:
        try:
            return await handler(visit)
        except (StoreUnavailable, NovaError) as error:
            return _refusal(503, f"{error.message}. {error.hint}")

    async def _answered(self, request: Request, session: Session, place: Place, outcome: Outcome) -> Response:
        match outcome:
            case View():
                values = {**await self._frame(request, session, place), **outcome.values}
                return self._renderer.page(outcome.template, values, outcome.status)
            case Leave():
                return RedirectResponse(f"{ROOT}{outcome.to}{_told(session, outcome)}", 303)
            case Fragments():
                around = await self._frame(request, session, place)
                made = {one.name: self._renderer.text(one.template, {**around, **one.values}) for one in outcome.parts}
                state = {"stopped": around["stopped"], "waiting": around["waiting"]}
                return JSONResponse({**state, **outcome.figures, **made})
            case _:
                return outcome

    async def _frame(self, request: Request, session: Session, place: Place) -> Mapping[str, object]:
        """What stands around every page."""
        stopped, waiting = await anyio.to_thread.run_sync(self._state)
        notice = session.notices.get(request.query_params.get("told", ""))
        return {
            "menu": self._menu,
            "section": place.section,
            "csrf": session.csrf,
            "operator": session.principal,
            "theme": theme_of(request),
            "here": self._here(request, place),
            "now_ms": self._desk.now_ms(),
            "stopped": stopped,
            "waiting": waiting,
            "notice": notice,
        }

    def _here(self, request: Request, place: Place) -> str:
        """Where choosing a theme leads back to: this very page, which often is what its question makes it. One that
        answers a form has no address of its own, and the page of its menu line stands in."""
        if request.method != "POST":
            return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        lines = (one.path for _, places in self._menu for one in places if one.section == place.section)
        return f"{ROOT}{next(lines, '/')}"

    def _state(self) -> tuple[bool, int]:
        settings = self._desk.settings
        return stop_requested(settings.stop_file), len(Mailbox(settings.data_dir).waiting())


def _ways(place: Place) -> list[tuple[str, Handler]]:
    return [(name, handler) for name, handler in (("GET", place.get), ("POST", place.post)) if handler is not None]


def menu_of(places: Iterable[Place]) -> tuple[tuple[str, tuple[Place, ...]], ...]:
    """The menu: groups in their order, each with the places that have a line in it."""
    lined = [(place.menu, place) for place in places if place.menu is not None]
    grouped = ((group, tuple(place for entry, place in lined if entry.group == group)) for group in GROUPS)
    return tuple((group, found) for group, found in grouped if found)


async def _nothing(visit: Visit) -> View:
    return missing("There is no page at this address.")


def _refusal(status: int, why: str) -> View:
    return View("refused.html", {"title": "That did not work", "why": why}, status)


def _told(session: Session, leave: Leave) -> str:
    if leave.notice is None:
        return ""
    return f"{'&' if '?' in leave.to else '?'}told={session.tell(leave.notice)}"
