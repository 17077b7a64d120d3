"""What a page shows of signing in; unknown is an answer of its own."""

from typing import TYPE_CHECKING

from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.scan_values import AuthStage, AuthSurface, answer, read_auth_surface

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

__all__ = ["AuthStage", "AuthSurface", "read_auth"]


async def read_auth(tab: "Tab", frame_id: str | None = None) -> AuthSurface:
    """One look at the document for everything about signing in."""

    async def read() -> AuthSurface:
        return read_auth_surface(answer(await tab.channel.ask("auth", frame_id=frame_id)))

    surface, _ = await on_one_document(tab, read)
    return surface
