"""Reading a page as text, in pieces that belong together."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from nova_mcp.browser.act.locate import Locator, find
from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.element_lines import plain_title
from nova_mcp.browser.perceive.scan_values import SeenElement, answer
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, NotFound, Precondition

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

Scope: TypeAlias = Literal["auto", "main", "page"]
ScopeUsed: TypeAlias = Literal["main", "page", "element"]

_ANSWER_MS: Final = 10_000
# A token has room for 512 characters; the place of a longer selector is taken by a ref.
_TOKEN_SELECTOR: Final = 150
_MAX_OFFSET: Final = 10_000_000
_MAX_NTH: Final = 999
_MAX_FRAME_ID: Final = 200
_REF: Final = re.compile(r"e[1-9][0-9]{0,6}")
_GATE_LIKE: Final = re.compile(r"(?:(?<=[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])|\A)!")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    locator: Locator | None = None
    scope: Scope = "auto"
    max_chars: int = 8000
    offset: int = 0
    continuation_token: str | None = None
    include_hidden: bool = False
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where to read on, and what the text was then."""

    content_hash: str
    offset: int
    scope: Scope
    include_hidden: bool
    selector: str | None = None
    ref: str | None = None
    nth: int | None = None
    frame_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReadReport:
    url: str
    title: str
    text: str
    chars: int
    total_chars: int
    scope_used: ScopeUsed
    content_hash: str
    truncated: bool = False
    continuation_token: str | None = None
    scan_truncated: bool = False
    navigated_during_call: bool = False
    whole_page: bool = False
    # Where the piece begins, and how many characters of the page's own the whole text holds, if they were counted.
    start: int = 0
    letters: int = 0
    # Text that nobody sees was read as well.
    hidden_too: bool = False


def write_token(continuation: Continuation) -> str:
    """A token for the caller to hand back; it grants nothing, so it is not signed."""
    fields = [
        1,
        continuation.content_hash,
        continuation.offset,
        continuation.scope,
        continuation.include_hidden,
        continuation.selector,
        continuation.ref,
        continuation.nth,
        continuation.frame_id,
    ]
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode().rstrip("=")


def read_token(token: str) -> Continuation:
    """The continuation in a token; anything that is not one of ours is refused."""
    try:
        fields = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, digest, offset, scope, hidden, selector, ref, nth, frame_id = fields
    except (ValueError, TypeError):
        raise _bad_token() from None
    well_formed = (
        (version is not True and version == 1)
        and isinstance(digest, str)
        and type(offset) is int
        and 0 <= offset <= _MAX_OFFSET
        and scope in ("auto", "main", "page")
        and isinstance(hidden, bool)
    )
    if not well_formed or not _is_locator(selector, ref, nth, frame_id):
        raise _bad_token()
    return Continuation(digest, offset, scope, hidden, selector, ref, nth, frame_id)


def _is_locator(selector: object, ref: object, nth: object, frame_id: object) -> bool:
    """The same shapes as when an element is named in a call: by a selector, by a ref, or not at all."""
    if selector is None:
        named = ref is None or (isinstance(ref, str) and _REF.fullmatch(ref) is not None)
        return named and nth is None and frame_id is None
    return (
        (isinstance(selector, str) and 0 < len(selector) <= _TOKEN_SELECTOR)
        and ref is None
        and (nth is None or (type(nth) is int and 0 <= nth <= _MAX_NTH))
        and (frame_id is None or (isinstance(frame_id, str) and 0 < len(frame_id) <= _MAX_FRAME_ID))
    )


def _bad_token() -> InvalidParams:
    return InvalidParams(
        "invalid_params",
        "continuationToken is not one that nova.read_text gave out.",
        "Call nova.read_text without it to start again.",
    )


def as_page_text(text: str) -> str:
    """Page text that stands below Nova's own lines: no line of it can pass for one of a gate, which begins with `!`."""
    return _GATE_LIKE.sub(r"\\!", text)


def content_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _resumed(request: ReadRequest) -> tuple[ReadRequest, str | None]:
    if request.continuation_token is None:
        return request, None
    at = read_token(request.continuation_token)
    locator = None
    if at.selector is not None or at.ref is not None:
        locator = Locator(at.selector, at.ref, at.frame_id, at.nth)
    resumed = ReadRequest(
        locator, at.scope, request.max_chars, at.offset, None, at.include_hidden, counted=request.counted
    )
    return resumed, at.content_hash


async def read_text(tab: "Tab", request: ReadRequest) -> ReadReport:
    """The text of the page or of one element, from an offset on."""
    request, wanted_hash = _resumed(request)
    element: SeenElement | None = None

    async def look() -> Json:
        nonlocal element
        node, frame_id = None, None
        if request.locator is not None:
            element, frame_id = await find(tab, request.locator)
            node = element.node
        question: Json = {
            "scope": request.scope,
            "node": node,
            "includeHidden": request.include_hidden,
            "counted": request.counted,
        }
        return await tab.channel.ask("read", question, frame_id=frame_id, timeout_ms=_ANSWER_MS)

    raw, moved = await on_one_document(tab, look)
    told = answer(raw)
    if told.get("gone"):
        raise NotFound("ref.stale", "The element left the page while it was being read.")
    text = str(told["text"])
    digest = content_hash(text)
    if wanted_hash is not None and digest != wanted_hash:
        raise Precondition("read.source_changed")
    if element is None:
        tab.perceived_epoch = tab.page_epoch
        tab.learn_status(told["status"])
    elif request.locator is not None and len((request.locator.selector or "").encode()) > _TOKEN_SELECTOR:
        (name,) = tab.perception.assign([element], told["url"], tab.page_epoch)
        request = replace(request, locator=Locator(ref=name))
    page = (told["url"], told["title"], told["scopeUsed"], told["scanTruncated"])
    return replace(_report(request, text, digest, page, moved), letters=int(told["letters"]))


def _report(
    request: ReadRequest, text: str, digest: str, page: tuple[str, str, ScopeUsed, bool], moved: bool
) -> ReadReport:
    url, title, scope_used, scan_truncated = page
    piece = text[request.offset : request.offset + request.max_chars]
    end = request.offset + len(piece)
    more = end < len(text)
    locator = request.locator or Locator()
    after = Continuation(
        digest, end, request.scope, request.include_hidden, locator.selector, locator.ref, locator.nth, locator.frame_id
    )
    return ReadReport(
        url=url,
        title=plain_title(title),
        text=piece,
        chars=len(piece),
        total_chars=len(text),
        scope_used=scope_used,
        content_hash=digest,
        truncated=more,
        continuation_token=write_token(after) if more else None,
        scan_truncated=scan_truncated,
        navigated_during_call=moved,
        whole_page=request.locator is None and scope_used == "page" and request.offset == 0 and not more,
        start=request.offset,
        hidden_too=request.include_hidden,
    )
