"""Signing in and out: with the operator's token, or with a link that `nova dashboard` made from it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from nova_mcp.dashboard.context import Desk, Place, Visit
from nova_mcp.dashboard.rendering import Renderer
from nova_mcp.dashboard.request_checks import cookie_name, from_here, read_form
from nova_mcp.dashboard.tickets import NoTicket, check
from nova_mcp.server.http.dashboard_home import ROOT

THEME_COOKIE: Final = "nova_theme"
THEMES: Final = ("auto", "light", "dark")
YEAR_S: Final = 365 * 24 * 3600
# The longest address of a page of ours: three names of 512 letters, of which each may be spelled in nine.
BACK_CHARS: Final = 16_000
_STALE: Final = "This link has expired or was used before. Run `nova dashboard` again for a new one."


@dataclass(frozen=True, slots=True)
class Refused:
    """Why somebody is not let in."""

    status: int
    why: str


Judge = Callable[[dict[str, str]], str | Refused]


def theme_of(request: Request) -> str:
    chosen = request.cookies.get(THEME_COOKIE, "auto")
    return chosen if chosen in THEMES else "auto"


class SignIn:
    """The pages that can be seen without a session."""

    def __init__(self, desk: Desk, renderer: Renderer) -> None:
        self._desk = desk
        self._renderer = renderer

    async def login(self, request: Request) -> Response:
        if request.method != "POST":
            return self._page(request)
        return await self._enter(request, self._by_token)

    async def enter(self, request: Request) -> Response:
        """Where a link leads. Opening it changes nothing yet: programs open links to preview them."""
        if request.method != "POST":
            values = {"ticket": request.query_params.get("ticket", "")[:200], **self._shown(request)}
            return self._renderer.page("sign_in/enter.html", values)
        return await self._enter(request, self._by_ticket)

    async def _enter(self, request: Request, judge: Judge) -> Response:
        if (foreign := from_here(request.headers)) is not None:
            return self._page(request, Refused(403, foreign.why))
        if (form := await read_form(request)) is None:
            return self._page(request, Refused(400, "That is not a form of this page."))
        principal = judge(form)
        if isinstance(principal, Refused):
            return self._page(request, principal)
        answer = RedirectResponse(f"{ROOT}/", 303)
        answer.set_cookie(
            cookie_name(request),
            self._desk.sessions.open(principal),
            path=ROOT,
            httponly=True,
            samesite="strict",
            secure=request.headers.get("origin", "").startswith("https:"),
        )
        return answer

    def _by_token(self, form: dict[str, str]) -> str | Refused:
        keys, sessions = self._desk.home.keys, self._desk.sessions
        if not sessions.patience():
            return Refused(429, "Too many wrong tokens. Wait a minute, or follow a link that `nova dashboard` makes.")
        principal = keys.principal_of(form.get("token", "").strip())
        if principal is None:
            sessions.wrong()
            return Refused(401, "That is not the token of this server.")
        if principal != keys.operator:
            sessions.wrong()
            return Refused(
                403, f"This token belongs to “{principal}”. The dashboard opens for the operator's token only."
            )
        return principal

    def _by_ticket(self, form: dict[str, str]) -> str | Refused:
        """Links are not counted: nobody guesses one, and strangers must not be able to lock the operator out."""
        keys = self._desk.home.keys
        found = check(keys.secret, keys.endpoint, self._desk.now_ms(), form.get("ticket", ""))
        if isinstance(found, NoTicket):
            told = _STALE if found.why == "expired" else "This is no sign-in link of this server."
            return Refused(401, told)
        fresh = found.issued_ms >= keys.since_ms and self._desk.sessions.spend(found.nonce, found.until_ms)
        return keys.operator if fresh else Refused(401, _STALE)

    def _page(self, request: Request, refused: Refused | None = None) -> Response:
        values = {"why": "" if refused is None else refused.why, "place": self._desk.home.keys.place}
        return self._renderer.page(
            "sign_in/login.html", {**values, **self._shown(request)}, 200 if refused is None else refused.status
        )

    def _shown(self, request: Request) -> dict[str, object]:
        return {"theme": theme_of(request), "now_ms": self._desk.now_ms()}


async def leave(visit: Visit) -> Response:
    """Sign out."""
    name = cookie_name(visit.request)
    visit.desk.sessions.close(visit.request.cookies.get(name))
    answer = RedirectResponse(f"{ROOT}/login", 303)
    answer.delete_cookie(name, path=ROOT, httponly=True, samesite="strict")
    return answer


async def choose_theme(visit: Visit) -> Response:
    """Light, dark, or what the system says; kept in the browser."""
    back = visit.field("back", BACK_CHARS)
    answer = RedirectResponse(back if back.startswith(f"{ROOT}/") else f"{ROOT}/", 303)
    chosen = visit.field("theme")
    if chosen in THEMES:
        answer.set_cookie(THEME_COOKIE, chosen, max_age=YEAR_S, path=ROOT, httponly=True, samesite="strict")
    return answer


PLACES = (Place("/logout", "", post=leave), Place("/theme", "", post=choose_theme))
