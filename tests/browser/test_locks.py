"""Tab locks and leases: readers together, one writer, fair, bounded, and clean after cancellation."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.targets.tab_lock import ReadWriteLock
from nova_mcp.core.leases import IMPLICIT_LEASE_MS, Lease, is_live
from nova_mcp.errors import Unavailable
from nova_mcp.memory.claims.rules import Foreign, may_mutate, renewed

A, B = ("p", "a"), ("p", "b")


async def test_readers_share_and_a_writer_excludes() -> None:
    lock = ReadWriteLock()
    async with lock.shared(), lock.shared():
        with pytest.raises(Unavailable) as caught:
            async with lock.exclusive(1):
                pass
        assert caught.value.reason_code == "tab.busy"
        assert caught.value.retryable
    async with lock.exclusive():
        for attempt in (lock.shared(1), lock.exclusive(1)):
            with pytest.raises(Unavailable):
                async with attempt:
                    pass
    assert not lock.held


async def test_a_waiting_writer_is_not_overtaken_by_later_readers() -> None:
    lock = ReadWriteLock()
    order: list[str] = []

    async def write() -> None:
        async with lock.exclusive():
            order.append("writer")

    async def read() -> None:
        async with lock.shared():
            order.append("reader")

    async with anyio.create_task_group() as group, lock.shared():
        group.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert order == []
    assert order == ["writer", "reader"]


async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    lock = ReadWriteLock()
    async with lock.exclusive(), anyio.create_task_group() as group:

        async def wait() -> None:
            async with lock.exclusive(60_000):
                pytest.fail("cancelled while waiting")

        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    async with lock.exclusive(1), anyio.create_task_group():
        assert lock.held
    assert not lock.held


async def test_a_writer_cancelled_in_the_moment_of_its_turn_gives_the_lock_back() -> None:
    lock = ReadWriteLock()
    async with anyio.create_task_group() as group:
        holder = lock.exclusive()
        await holder.__aenter__()

        async def wait() -> None:
            async with lock.exclusive(60_000):
                await anyio.sleep_forever()

        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await holder.__aexit__(None, None, None)
        group.cancel_scope.cancel()
    async with lock.exclusive(1):
        assert lock.held


def test_only_the_holder_of_a_live_lease_mutates() -> None:
    lease = Lease(A, 1000)
    assert may_mutate(lease, A, 0) is None
    assert may_mutate(lease, B, 400) == Foreign("a", 600)
    assert may_mutate(lease, B, 1000) is None
    assert may_mutate(None, B, 0) is None


owners = st.sampled_from([A, B])


@given(owners, st.integers(0, 10**6), st.booleans(), owners, st.integers(0, 10**6), st.integers(5000, 10**6))
def test_a_renewed_lease_is_the_callers_live_and_never_shorter(holder, until, implicit, caller, now, ttl) -> None:
    lease = Lease(holder, until, implicit, ttl)
    if may_mutate(lease, caller, now) is None:
        after = renewed(lease, caller, now)
        assert after.owner == caller
        assert is_live(after, now)
        if holder == caller and until > now:
            assert after.expires_at_ms >= until
            assert after.implicit == implicit
        else:
            assert after == Lease(caller, now + IMPLICIT_LEASE_MS)


async def test_what_can_wait_takes_only_a_free_lock_and_gives_way_at_once() -> None:
    lock = ReadWriteLock()
    async with lock.exclusive():
        with pytest.raises(Unavailable, match="held this tab"):
            async with lock.passing():
                raise AssertionError("somebody else has it")
    inside, ended = anyio.Event(), []

    async def passing() -> None:
        try:
            async with lock.passing():
                inside.set()
                await anyio.sleep_forever()
        except Unavailable as busy:
            ended.append(busy.reason_code)

    async with anyio.create_task_group() as group:
        group.start_soon(passing)
        await inside.wait()
        async with lock.shared(0):
            assert not ended
        async with lock.exclusive(1000):
            pass
    assert ended == ["tab.busy"]
    assert not lock.held


async def test_a_passing_hold_that_ends_by_itself_leaves_the_lock_free() -> None:
    lock = ReadWriteLock()
    async with lock.passing(), lock.passing():
        assert lock.held
    with pytest.raises(ValueError, match="mine"):
        async with lock.passing():
            raise ValueError("mine")
    assert not lock.held
