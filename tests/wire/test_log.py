"""The log: one entry is one entry, whatever callers put into it."""

import io
import logging
import sys

import pytest

from nova_mcp.secrets.model import Secret
from nova_mcp.secrets.redactor import Redactor
from nova_mcp.server.logs import FORMAT, OneEntry, hide_in_logs

FORGED = "x\n2026-01-01 00:00:00,000 ERROR nova_mcp: forged\r\x1b[2J\x9b\u202e\u2028y"


def _entry(message: str, *, broken: Exception | None = None) -> str:
    record = logging.LogRecord("nova_mcp", logging.ERROR, __file__, 1, "call of %s", (message,), None)
    if broken is not None:
        try:
            raise broken
        except type(broken):
            record.exc_info = sys.exc_info()
    return OneEntry(FORMAT).format(record)


def test_what_a_caller_sent_cannot_begin_an_entry_of_its_own() -> None:
    (line,) = _entry(FORGED).splitlines()
    assert line.isprintable()
    assert "\\n2026-01-01" in line


def test_the_text_of_an_error_is_indented_under_its_entry() -> None:
    head, *rest = _entry("a tool", broken=RuntimeError(FORGED)).split("\n")
    assert head.endswith("call of a tool")
    assert all(line.startswith("  ") and line.isprintable() for line in rest)


@pytest.mark.parametrize("text", ["plain", "Grüße an 東京", "emoji 🎉"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert _entry(text).endswith(text)


def test_no_handler_writes_a_secret_until_hiding_ends() -> None:
    root, written = logging.getLogger(), io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(OneEntry(FORMAT))
    root.addHandler(handler)
    redactor = Redactor()
    try:
        end = hide_in_logs(redactor.text)
        redactor.learn([Secret("s", "hunter2 ä")])
        logging.getLogger("nova_mcp.x").error("typed %s", "hunter2 ä")
        broken = "at hunter2%20%C3%A4"
        try:
            raise RuntimeError(broken)
        except RuntimeError:
            logging.getLogger("other").exception("broke")
        hidden = written.getvalue()
        end()
        logging.getLogger("nova_mcp.x").error("hunter2 ä")
    finally:
        root.removeHandler(handler)
    assert hidden.count("«secret:s»") == 2
    assert "hunter2" not in hidden
    assert written.getvalue().endswith("hunter2 ä\n")
    assert isinstance(handler.formatter, OneEntry)
