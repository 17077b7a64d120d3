"""The map of the code: what it draws, and when it is out of date."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.code_map import PAGE, RECORDER, layers, parts_of, problems, walk_text  # noqa: E402
from bench.walks import SOURCE, Function, Trace  # noqa: E402


def call() -> Trace:
    """A server, a stage, a handler that asks a rule, a recorder that writes, and a renderer."""
    receive, run, gate = (
        Function("server/a.py", "receive", 1),
        Function("calls/b.py", "run", 1),
        Function("calls/c.py", "gate", 1),
    )
    promote, rule = Function("tools/d.py", "promote", 1), Function("core/e.py", "rule", 1)
    close, record = Function("calls/b.py", "close", 9), Function(RECORDER, "Recorder.record", 1)
    write, render = Function("evidence/store.py", "append", 1), Function("calls/f.py", "render", 1)
    return Trace(
        {
            receive: None,
            run: receive,
            gate: run,
            promote: run,
            rule: promote,
            close: run,
            record: close,
            write: record,
            render: run,
        }
    )


def test_a_call_is_drawn_in_the_parts_of_its_life() -> None:
    parts = {part: [one.name for one in functions] for part, functions in parts_of(call(), "promote").items()}
    assert parts == {
        "server": ["receive"],
        "before": ["run", "gate"],
        "handler": ["promote", "rule"],
        "after": ["close"],
        "commit": ["Recorder.record", "append"],
        "answer": ["render"],
    }


def test_a_file_stands_once_in_a_part_with_what_ran_there() -> None:
    rows = [line for line in walk_text(call(), "promote").splitlines() if "calls/b.py" in line]
    assert [row.split(" | ")[1] for row in rows] == ["`run` |", "`close` |"]


def test_every_package_of_the_source_stands_in_a_layer() -> None:
    names = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {
        path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__"
    }
    assert {name for layer in layers() for name in layer} == names


def test_the_page_is_that_of_the_code() -> None:
    assert problems(PAGE.read_text(encoding="utf-8")) == []


def test_another_layer_and_a_file_that_is_gone_are_named() -> None:
    page = PAGE.read_text(encoding="utf-8")
    (stale,) = problems(page.replace("`core/`", "`kernel/`"))
    assert "layers or packages" in stale
    (gone,) = problems(page.replace("(../src/nova_mcp/server/protocol.py)", "(../src/nova_mcp/server/wire.py)"))
    assert gone == "the call runs through server/wire.py, which is gone"
