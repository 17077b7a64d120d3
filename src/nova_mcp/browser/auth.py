"""What a page shows of signing in; unknown is an answer of its own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nova_mcp.browser.seen import answer
from nova_mcp.browser.steady import on_one_document

if TYPE_CHECKING:
    from nova_mcp.browser.tab import Tab

AuthStage = Literal[
    "public_page", "login_wall", "identity_step", "federated_login", "mfa_challenge", "authenticated", "unknown"
]


@dataclass(frozen=True, slots=True)
class AuthSurface:
    """None means that the page does not tell."""

    stage: AuthStage
    logged_in: bool | None
    login_wall_visible: bool | None
    mfa_challenge: bool | None
    auth_error: bool | None


async def read_auth(tab: "Tab", frame_id: str | None = None) -> AuthSurface:
    """One look at the document for everything about signing in."""

    async def read() -> AuthSurface:
        told = answer(await tab.channel.ask("auth", frame_id=frame_id))
        return AuthSurface(
            stage=told["stage"],
            logged_in=told["loggedIn"],
            login_wall_visible=told["loginWallVisible"],
            mfa_challenge=told["mfaChallenge"],
            auth_error=told["authError"],
        )

    surface, _ = await on_one_document(tab, read)
    return surface
