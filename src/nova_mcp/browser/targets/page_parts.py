"""What every page is made of before it stands behind a tab's id, and whether it can still be reached."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from playwright.async_api import Error, Page

from nova_mcp.browser.channel.page_channel import PageChannel
from nova_mcp.browser.egress import Egress
from nova_mcp.browser.egress.document_guard import NavigationGuard
from nova_mcp.browser.files.downloads import Downloads
from nova_mcp.browser.process.host_lag import HostLag
from nova_mcp.browser.state.sandbox import Sandbox
from nova_mcp.browser.targets.page_closing import close_page
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.policy import NavigationPolicy


@dataclass(frozen=True, slots=True)
class PageParts:
    """The same for every page."""

    bundle: str
    policy: NavigationPolicy
    lag: HostLag
    downloads: Downloads
    egress: Egress | None = None
    # Nova's data folder, and what a sandbox may show of it.
    files_of: Callable[[str], tuple[Path, tuple[Path, ...]]] | None = None

    async def equip(self, tab: Tab, page: Page) -> None:
        """Put a page behind an id: heard, guarded, and only then used."""
        channel = await PageChannel.open(page, self.bundle, self.lag)
        egress = None if self.egress is None else self.egress.of(tab.sandbox_id)
        guard = NavigationGuard(page, channel, self._policy_of(tab), tab.note_denied, egress)
        guard.opener_url = tab.opened_from
        tab.attach(page, channel, guard)
        await guard.attach()

    def _policy_of(self, tab: Tab) -> NavigationPolicy:
        """Of Nova's own folder a tab may show what its sandbox downloaded and what a person put into it."""
        if not self.policy.allow_file_roots or self.files_of is None:
            return self.policy
        data, shown = self.files_of(tab.sandbox_id)
        folders = tuple(str(folder.resolve()) for folder in shown)
        return replace(self.policy, data_folder=str(data.resolve()), shown_folders=folders)


@asynccontextmanager
async def closed_unless_kept(page: Page) -> AsyncIterator[None]:
    """A page that never got behind an id is one that nobody could ever close."""
    try:
        yield
    except BaseException:
        with anyio.CancelScope(shield=True):
            await close_page(page)
        raise


async def answers(sandbox: Sandbox) -> bool:
    """Whether the browser behind a sandbox still lives."""
    try:
        if sandbox.context is not None:
            await sandbox.context.cookies("http://127.0.0.1/")
            return sandbox.context is not None
    except Error:
        return False
    return False
