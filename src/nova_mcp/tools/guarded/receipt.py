"""Receipts of commits: pictures before and after, what went out, what appeared, what that proves."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from nova_mcp.browser.act.action_report import ActionReport
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.read.screenshot import ScreenshotShelf, ShotOptions, capture, receipt_shelf
from nova_mcp.core.urls import redact_query
from nova_mcp.errors import NovaError
from nova_mcp.tools.browse.screenshot import shelf_mark
from nova_mcp.tools.context import ToolContext
from nova_mcp.verification.contracts.text import contract_lines
from nova_mcp.verification.model import Contract, GuardedCommit
from nova_mcp.verification.receipts import Receipt, ReceiptRequest

PICTURE = ShotOptions(format="jpeg", quality=50, max_width=800)
# A picture is worth less than the commit it rides on.
PICTURE_LIMIT_S = 2.0


@dataclass(slots=True)
class ReceiptBook:
    """Collects what one commit leaves behind; nothing in here may change the outcome of the call it rides on."""

    ctx: ToolContext
    url_before: str = ""
    picture_before: str | None = None

    async def before(self) -> None:
        """The page as it is before the commit; the first look counts."""
        if self.url_before:
            return
        self.url_before = self._address(self.ctx.tab.url)
        self.picture_before = await self._picture()

    async def after(self, commit: GuardedCommit, contract: Contract | None, report: ActionReport) -> Receipt:
        effect = report.effect
        receipt = Receipt(
            transition_id=commit.transition_id,
            tool=self.ctx.call.tool_name,
            element=report.element,
            url_before=self.url_before,
            url_after=self._address(report.url),
            requests=_requests(report),
            appeared=tuple(effect.new_text),
            verdict=commit.verification_status,
            reason=commit.indeterminate_reason,
            started_at_ms=commit.started_at,
            completed_at_ms=commit.completed_at,
            contract=tuple(contract_lines(contract)) if contract is not None else (),
            picture_before=self.picture_before,
            picture_after=await self._picture(),
        )
        return self._safe(receipt)

    def _safe(self, receipt: Receipt) -> Receipt:
        """Stored texts are read later by people and programs that know of no secrets."""
        redacted = self.ctx.secrets.redactor.json(receipt.model_dump(mode="json", by_alias=True))
        return Receipt.model_validate(redacted)

    def _address(self, url: str) -> str:
        return url if self.ctx.settings.keep_raw_urls else redact_query(url)

    async def _picture(self) -> str | None:
        ctx = self.ctx
        if not ctx.settings.receipts.pictures:
            return None
        name = f"{shelf_mark(ctx.caller.principal)}{ctx.ports.ids.token(16)}"
        with anyio.move_on_after(PICTURE_LIMIT_S):
            try:
                shot = await capture(ctx.tab, PICTURE, ctx.secrets.shown_at)
                shelf: ScreenshotShelf = receipt_shelf(ctx.settings.data_dir)
                await anyio.to_thread.run_sync(shelf.put, name, shot, ctx.ports.clock.now_ms())
            except (NovaError, DocumentChanged, PageScriptError, OSError):
                return None
            return name
        return None


def _requests(report: ActionReport) -> Sequence[ReceiptRequest]:
    return tuple(
        ReceiptRequest(method=one.method, url=one.path, status=one.status if isinstance(one.status, int) else None)
        for one in report.effect.requests
    )
