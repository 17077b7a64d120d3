"""From bytes to JSON-RPC messages, and a usable error for everything that is not one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pydantic_core
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from nova_mcp.core.values import Json

MAX_LINE_BYTES = 32 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = 512

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+')
_ID_AT_END = re.compile(rb'[,{]\s*"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")\s*}\s*$')


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message that can't be served; `request_id` is empty when the sender gave none that could be found."""

    code: int
    message: str
    reason_code: str
    request_id: RequestId | None = None

    @property
    def body(self) -> dict[str, Json]:
        error: dict[str, Json] = {
            "code": self.code,
            "message": self.message,
            "data": {"reasonCode": self.reason_code},
        }
        return {"jsonrpc": "2.0", "id": self.request_id, "error": error}


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was not kept, save for its two ends."""

    size: int
    head: bytes
    tail: bytes


class LineSplitter:
    """Cuts a byte stream into lines and never holds more than one line of the largest size."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._limit = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._dropped: Oversized | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """Take the next bytes; yields every line that ends in them."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            yield self._take()
            start = end + 1
        if start < len(chunk):
            self._add(chunk[start:])

    def rest(self) -> bytes | Oversized | None:
        """What stood behind the last newline when the stream ended."""
        return self._take() if self._size else None

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._dropped is not None:
            tail = (self._dropped.tail + part)[-_TAIL_BYTES:]
            self._dropped = Oversized(self._size, self._dropped.head, tail)
            return
        self._parts.append(part)
        if self._size > self._limit:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._dropped = Oversized(self._size, whole[:_HEAD_BYTES], whole[-_TAIL_BYTES:])

    def _take(self) -> bytes | Oversized:
        line = self._dropped or b"".join(self._parts)
        self._parts.clear()
        self._size, self._dropped = 0, None
        return line


def reject_oversized(line: Oversized, limit: int = MAX_LINE_BYTES) -> Rejected:
    return _too_large(line.size, limit, recover_id(line.head, line.tail))


def decode(data: bytes, max_bytes: int) -> JSONRPCMessage | Rejected:
    """One message, or the error its sender should get."""
    if len(data) > max_bytes:
        return _too_large(len(data), max_bytes, recover_id(data[:_HEAD_BYTES], data[-_TAIL_BYTES:]))
    try:
        data.decode("utf-8")
        # NaN and Infinity are refused here: the format has no such numbers, and no answer could carry them back.
        value = pydantic_core.from_json(data, allow_inf_nan=False)
    except UnicodeDecodeError as error:
        return _unreadable(f"the message is not UTF-8 (byte {error.start})", data)
    except ValueError as error:
        return _unreadable(str(error)[:200], data)
    except RecursionError:
        return _unreadable("the message is nested too deeply", data)
    if isinstance(value, list):
        return Rejected(INVALID_REQUEST, "Invalid request: batches are not served, send one message", "invalid_request")
    if not isinstance(value, dict):
        return Rejected(INVALID_REQUEST, "Invalid request: a message is a JSON object", "invalid_request")
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return Rejected(INVALID_REQUEST, _envelope_problem(value), "invalid_request", as_id(value.get("id")))
    if isinstance(message, JSONRPCNotification) and "id" in value:
        # A request whose id is malformed would pass for a notification and never be answered.
        return Rejected(INVALID_REQUEST, _envelope_problem(value), "invalid_request")
    return message


def as_id(value: object) -> RequestId | None:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def recover_id(head: bytes, tail: bytes) -> RequestId | None:
    """The id of a message nobody could parse: the top-level member near its start, or the one that closes it."""
    found = _id_in_head(head)
    if found is None and (match := _ID_AT_END.search(tail)):
        found = match.group(1)
    if found is None:
        return None
    try:
        return as_id(pydantic_core.from_json(found))
    except ValueError:
        return None


def _id_in_head(head: bytes) -> bytes | None:
    depth, key, after_colon = 0, b"", False
    for match in _TOKEN.finditer(head[:_HEAD_BYTES]):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
            after_colon = False
        elif token in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and token == b":":
            after_colon = True
        elif depth == 1 and token == b",":
            after_colon = False
        elif depth == 1 and after_colon:
            # A token that touches the cut may be half an id.
            if key == b'"id"' and match.end() < len(head):
                return token
            after_colon = False
        elif depth == 1:
            key = token
    return None


def _too_large(size: int, limit: int, request_id: RequestId | None) -> Rejected:
    return Rejected(
        INVALID_PARAMS,
        f"The message has {size} bytes; at most {limit} are read. Nothing ran.",
        "size_limit",
        request_id,
    )


def _unreadable(problem: str, data: bytes) -> Rejected:
    request_id = recover_id(data[:_HEAD_BYTES], data[-_TAIL_BYTES:])
    return Rejected(PARSE_ERROR, f"Parse error: {problem}", "parse_error", request_id)


def _envelope_problem(value: dict[str, Json]) -> str:
    if value.get("jsonrpc") != "2.0":
        return 'Invalid request: jsonrpc must be "2.0"'
    if "method" in value and not isinstance(value["method"], str):
        return "Invalid request: method must be a string"
    if "id" in value and as_id(value["id"]) is None:
        return "Invalid request: id must be a string or an integer"
    if not isinstance(value.get("params", {}), dict):
        return "Invalid request: params must be an object"
    return "Invalid request: neither a request, a notification nor a response"
