"""Bytes become messages, or errors that name the request they belong to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCRequest

from nova_mcp.server.stdio.framing import LineSplitter, Oversized, Rejected, decode, recover_id, reject_oversized

LIMIT = 10_000
DEEP = 5_000


def request(**changes) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}} | changes).encode()


@pytest.mark.parametrize(
    ("data", "code", "request_id"),
    [
        (b"{", -32700, None),
        (b"hello", -32700, None),
        (b'{"jsonrpc":"2.0","id":7,"method":', -32700, 7),
        (b'{"jsonrpc":"2.0","id":"a-1","method":"x","params":{"v":NaN}}', -32700, "a-1"),
        (b'{"method":"x","params":{"v":Infinity},"jsonrpc":"2.0","id":9}', -32700, 9),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"v":"\xff\xfe"}}', -32700, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"v":"\\ud800"}}', -32700, 7),
        (b'{"id":8,"jsonrpc":"2.0","method":"x","params":{"v":' + b"[" * DEEP + b"]" * DEEP + b"}}", -32700, 8),
        (b'{"params":{"v":' + b"[" * 400 + b"]" * 400 + b'},"method":"x","jsonrpc":"2.0","id":8}', -32700, 8),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"7", -32600, None),
        (b"null", -32600, None),
        (request(jsonrpc="1.0"), -32600, 7),
        (request(method=5), -32600, 7),
        (request(params=[1]), -32600, 7),
        (request(id=1.5), -32600, None),
        (request(id=True), -32600, None),
        (b'{"jsonrpc":"2.0","id":7}', -32600, 7),
        (request(params={"v": "x" * LIMIT}), -32602, 7),
    ],
)
def test_what_is_no_message_is_rejected_with_the_id_it_had(data: bytes, code: int, request_id):
    rejected = decode(data, LIMIT if len(data) > LIMIT and b"xxxx" in data else 100_000)
    assert isinstance(rejected, Rejected)
    assert (rejected.code, rejected.request_id) == (code, request_id)
    assert rejected.message


def test_a_request_passes_unchanged():
    message = decode(request(params={"name": "nova.x", "arguments": {"ü": [1, 2.5, None]}}), LIMIT)
    assert isinstance(message, JSONRPCRequest)
    assert message.params == {"name": "nova.x", "arguments": {"ü": [1, 2.5, None]}}


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes):
    result = decode(data, 1000)
    if isinstance(result, Rejected):
        json.dumps(result.body)


@given(
    st.one_of(st.integers(0, 10**12), st.text(max_size=20)),
    st.dictionaries(st.text(max_size=8), st.one_of(st.integers(), st.text(max_size=20)), max_size=4),
    st.booleans(),
)
def test_the_id_is_found_without_parsing_and_never_taken_from_inside(request_id, params, first):
    inner = {"id": "decoy", **params}
    body = {"id": request_id, "params": inner} if first else {"params": inner, "id": request_id}
    data = json.dumps(body).encode()
    assert recover_id(data, data[-512:]) == request_id


def test_an_id_deeper_in_the_message_is_not_its_id():
    data = b'{"method":"x","params":{"id":5}}'
    assert recover_id(data, data) is None


@given(st.lists(st.binary(max_size=50).filter(lambda line: b"\n" not in line), max_size=8), st.integers(1, 20))
def test_lines_come_out_as_they_went_in_however_they_are_cut(lines: list[bytes], step: int):
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    out = [line for at in range(0, len(stream), step) for line in splitter.feed(stream[at : at + step])]
    assert out == lines
    assert splitter.rest() is None


def test_a_line_over_the_limit_is_dropped_but_its_ends_are_kept():
    splitter = LineSplitter(max_line_bytes=1000)
    line = b'{"params":{"v":"' + b"x" * 50_000 + b'"},"jsonrpc":"2.0","id":12}'
    got: list[bytes | Oversized] = []
    for at in range(0, len(line), 700):
        got += splitter.feed(line[at : at + 700])
    got += splitter.feed(b"\nnext\n")
    dropped, following = got
    assert isinstance(dropped, Oversized)
    assert dropped.size == len(line)
    assert len(dropped.head) + len(dropped.tail) < 3000
    assert reject_oversized(dropped, 1000).request_id == 12
    assert following == b"next"


def test_a_last_line_without_newline_counts():
    splitter = LineSplitter()
    assert list(splitter.feed(b"a\nb")) == [b"a"]
    assert splitter.rest() == b"b"
