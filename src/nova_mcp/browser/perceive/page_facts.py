"""Where a page stands: its address, state, size and focus, without looking at its elements."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.composition import layer_lines, shown_auth
from nova_mcp.browser.perceive.element_lines import plain_title
from nova_mcp.browser.perceive.perception import active_line
from nova_mcp.browser.perceive.report import MAX_TITLE
from nova_mcp.browser.perceive.scan_values import (
    Answer,
    AuthSurface,
    SeenPage,
    answer,
    read_auth_surface,
    read_layers,
    read_page,
)
from nova_mcp.core.tokens import fit_tokens

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What page_info tells about a document."""

    page: SeenPage
    title: str
    active_element: str | None
    dialogs: tuple[str, ...]
    auth: AuthSurface | None
    frame_count: int
    dom_nodes: int
    rev: int
    page_epoch: int
    perceived_rev: int | None
    navigated_during_call: bool


async def page_facts(tab: "Tab") -> PageFacts:
    async def read() -> tuple[Answer, str | None]:
        told = answer(await tab.channel.ask("info"))
        return told, await active_line(tab, told)

    (told, active), moved = await on_one_document(tab, read)
    page = read_page(told)
    tab.title = plain_title(page.title)
    return PageFacts(
        page=page,
        title=fit_tokens(plain_title(page.title, MAX_TITLE), 60),
        active_element=active,
        dialogs=layer_lines(read_layers(told)),
        auth=shown_auth(read_auth_surface(told["auth"])),
        frame_count=told["frameCount"],
        dom_nodes=told["domNodes"],
        rev=tab.rev,
        page_epoch=tab.page_epoch,
        perceived_rev=tab.perception.perceived_rev,
        navigated_during_call=moved,
    )
