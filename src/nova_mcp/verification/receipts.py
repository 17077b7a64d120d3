"""Receipts: the proof of one dispatched act, for people who ask later what really happened."""

import json
from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from nova_mcp.verification.model import VerificationStatus

LINE_CHARS: Final = 200
TEXT_CHARS: Final = 60


class _Stored(BaseModel):
    # A store outlives the program that wrote it: a field of a later version is no reason to lose the receipt.
    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class ReceiptRequest(_Stored):
    """One request the act sent; no status means that no answer was seen."""

    method: str
    url: str
    status: int | None = None


class Receipt(_Stored):
    """What was sent, what came back, what the page showed, and what that proves."""

    transition_id: str
    tool: str
    element: str = ""
    url_before: str = ""
    url_after: str = ""
    requests: tuple[ReceiptRequest, ...] = ()
    appeared: tuple[str, ...] = ()
    verdict: VerificationStatus
    reason: str | None = None
    started_at_ms: int
    completed_at_ms: int | None = None
    contract: tuple[str, ...] = ()
    picture_before: str | None = None
    picture_after: str | None = None

    @property
    def duration_ms(self) -> int:
        return 0 if self.completed_at_ms is None else max(0, self.completed_at_ms - self.started_at_ms)


def receipt_to_json(receipt: Receipt) -> str:
    # Escaped, because text from a page may hold what no database takes: zero bytes and halves of characters.
    return json.dumps(receipt.model_dump(by_alias=True), separators=(",", ":"), sort_keys=True)


def receipt_from_json(text: str) -> Receipt:
    return Receipt.model_validate_json(text)


def receipt_line(receipt: Receipt) -> str:
    """One short line for an answer: what was pressed, what went out, what appeared, what is proven."""
    parts = [" ".join(part for part in (_bare(receipt.tool), receipt.element) if part)]
    parts += [_request(request) for request in receipt.requests[:2]]
    parts += [f'"{_cut(text)}"' for text in receipt.appeared[:1]]
    verdict = receipt.verdict if receipt.reason is None else f"{receipt.verdict} ({receipt.reason})"
    body = " ".join(" · ".join(parts).split())
    room = LINE_CHARS - len(verdict) - len(receipt.transition_id) - 20
    return f"{body if len(body) <= room else body[: room - 1] + '…'} · {verdict} · receipt {receipt.transition_id}"


def _bare(tool: str) -> str:
    return tool.rpartition(".")[2]


def _request(request: ReceiptRequest) -> str:
    path = request.url.partition("://")[2].partition("/")[2].partition("?")[0] if "://" in request.url else request.url
    shown = path if path.startswith("/") else f"/{path}"
    return f"{request.method} {_cut(shown)} {'no answer' if request.status is None else request.status}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT_CHARS else line[: TEXT_CHARS - 1] + "…"
