"""`scripts/walk`: what it counts, and that every walk can be traced through a real server."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.walks import FLOOR, WALKS, Function, Trace, Tracer, sizes  # noqa: E402

from nova_mcp.core import keywords  # noqa: E402
from nova_mcp.core.concurrency import Captured  # noqa: E402


def function(name: str, file: str = "a.py") -> Function:
    return Function(file, name, 1)


def test_functions_are_counted_in_every_task_and_thread() -> None:
    async def calls() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, keywords.words, "one lamp")
            group.start_soon(anyio.to_thread.run_sync, keywords.plain, "two lamps")

    with Tracer().installed() as tracer:
        keywords.has_word("a lamp", "lamp")
        with tracer.tracing() as trace:
            anyio.run(calls)
            worker = threading.Thread(target=keywords.cut, args=("three lamps", 5))
            worker.start()
            worker.join()
        keywords.has_word("a lamp", "lamp")
    names = {one.name for one in trace().functions}
    assert names >= {"words", "plain", "cut"}
    assert "has_word" not in names
    assert {one.file for one in trace().functions} == {"core/keywords.py"}


def test_a_function_is_counted_once_with_its_first_caller() -> None:
    with Tracer().installed() as tracer, tracer.tracing() as trace:
        keywords.words("one lamp and another lamp")
        keywords.words("one more lamp")
    names = [one.name for one in trace().callers]
    assert len(names) == len(set(names))
    first = next(one for one in trace().callers if one.name == "words")
    assert trace().callers[first] is None
    assert first in trace().callers.values()


def test_what_a_loop_that_had_begun_before_does_is_left_out() -> None:
    async def beat() -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            keywords.words("a beat")

    async def call(tracer: Tracer) -> Trace:
        async with anyio.create_task_group() as group:
            group.start_soon(Captured[None]().run, beat)
            await anyio.sleep(0.01)
            with tracer.tracing() as trace:
                await anyio.sleep(0.01)
                keywords.plain("a call")
            group.cancel_scope.cancel()
        return trace()

    with Tracer().installed() as tracer:
        names = {one.name for one in anyio.run(call, tracer).functions}
    assert "plain" in names
    assert names.isdisjoint({"words", "Captured.run"})


def test_the_floor_is_what_all_walks_share() -> None:
    shared, own = function("shared"), function("own", "b.py")
    traces = {"one": Trace({shared: None, own: shared}), "two": Trace({shared: None})}
    assert sizes(traces) == {
        "one": {"files": 2, "functions": 2},
        "two": {"files": 1, "functions": 1},
        FLOOR: {"files": 1, "functions": 1},
    }


@pytest.mark.browser
def test_every_walk_is_printed_as_json() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "walk", "--json"], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert list(printed) == [*WALKS, FLOOR]
    for walk in WALKS:
        assert printed[walk]["functions"] > printed[FLOOR]["functions"] > printed[FLOOR]["files"] > 10


def test_an_unknown_walk_is_refused_before_anything_starts() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "walk", "stroll"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "there is no walk stroll" in done.stderr
