"""A running server forgets in time, and the chain still verifies."""

import pytest

from nova_mcp.evidence import janitor, store
from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.janitor import STEP, Janitor, retention_policy
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.settings import RetentionSettings


class Later:
    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return float(self._now_ms)


async def test_a_round_does_the_chores_of_others_at_the_time_it_runs(db, build, monkeypatch):
    done = []
    stop = RuntimeError("one round is enough")

    async def sleep(seconds):
        if done:
            raise stop

    monkeypatch.setattr(janitor, "sleep", sleep)
    policy, chore = retention_policy(RetentionSettings()), lambda conn, now: done.append(now) or 0
    keeper = Janitor(db, Later(5_000), policy, build.eraser("a"), [chore])
    with pytest.raises(RuntimeError, match="one round"):
        await keeper.run()
    assert done == [5_000]


async def test_a_sweep_erases_what_is_over_in_steps_and_nothing_else(db, build):
    db.write_sync(store.register_server, build.server("a"))
    old = [build.call("a", f"old-{number}") for number in range(STEP + 5)]
    for record in old:
        db.write_sync(store.append_call, record)
    policy = retention_policy(RetentionSettings(other_days=30))
    start = old[0].started_at_ms
    assert await Janitor(db, Later(start + 29 * DAY_MS), policy, build.eraser("a")).sweep() == 0
    assert await Janitor(db, Later(start + 31 * DAY_MS), policy, build.eraser("a")).sweep() == STEP + 5
    assert await Janitor(db, Later(start + 31 * DAY_MS), policy, build.eraser("a")).sweep() == 0
    assert db.read_sync(lambda conn: list(verify(conn))) == []
    kept = db.read_sync(store.get_call, "old-1")
    assert kept is not None
    assert kept.record is None
