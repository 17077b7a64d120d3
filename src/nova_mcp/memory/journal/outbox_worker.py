"""Does the jobs that follow a commit, each once, however many servers look for work."""

import json
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import anyio
from sqlalchemy import Connection
from sqlalchemy import text as sql

from nova_mcp.core.clock import Ports
from nova_mcp.memory.journal.model import JobType
from nova_mcp.memory.journal.outbox_store import Job, fail, finish, has_work, still_held, take
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0

# What a job does, inside the transaction that also says it is done: either both happened or neither.
Handler = Callable[[Connection, Job, int], None]

_PROPOSE = sql(
    "INSERT INTO learning_proposal "
    "(job_key, task_id, target_id, principal, agent_id, candidate_ids, state, proposed_at_ms) "
    "VALUES (:job_key, :task_id, :target_id, :principal, :agent_id, :candidate_ids, 'open', :now) "
    "ON CONFLICT (job_key) DO NOTHING"
)


def nothing_to_do(conn: Connection, job: Job, now_ms: int) -> None:
    """The commit itself was all."""


def candidate_ids(job: Job) -> list[int]:
    ids = job.payload.get("candidateIds")
    if not isinstance(ids, list):
        raise ValueError("candidateIds must be a list of candidate numbers")
    numbers = [one for one in ids if isinstance(one, int) and not isinstance(one, bool)]
    if len(numbers) != len(ids):
        raise ValueError("candidateIds must be a list of candidate numbers")
    return numbers


def propose(conn: Connection, job: Job, now_ms: int) -> None:
    """Put the candidates of a commit forward; whoever generates knowledge takes the proposal up."""
    ids = candidate_ids(job)
    if not ids:
        # A caller may commit although nothing is ready; that proposes nothing.
        return
    conn.execute(
        _PROPOSE,
        {
            "job_key": job.job_key,
            "task_id": job.task_id,
            "target_id": job.target_id,
            "principal": job.principal,
            "agent_id": job.agent_id,
            "candidate_ids": json.dumps(ids, separators=(",", ":")),
            "now": now_ms,
        },
    )


# A type without an entry waits until somebody can do it: it stays pending and loses no try.
HANDLERS: Final[Mapping[JobType, Handler]] = MappingProxyType(
    {"finalize.noop": nothing_to_do, "finalize.memory.promote": propose}
)


class OutboxWorker:
    """One per server; the store decides who gets which job."""

    def __init__(self, db: Database, ports: Ports, name: str, handlers: Mapping[JobType, Handler] = HANDLERS) -> None:
        self._db = db
        self._ports = ports
        self._name = name
        self._handlers = handlers

    async def run(self) -> None:
        while True:
            if not await self.step():
                await anyio.sleep(LOOK_EVERY_S)

    async def step(self) -> bool:
        """Do one job if one is due; whether there was one."""
        types, now_ms = self._handlers.keys(), self._ports.clock.now_ms()
        # Looked for without the write lock, which calls need more urgently.
        if not await self._db.read(has_work, now_ms, types):
            return False
        job = await self._db.write(take, self._name, now_ms, types)
        if job is None:
            return False
        self._ports.faults.hit("outbox.leased")
        try:
            await self._db.write(self._perform, job)
        except StoreUnavailable:
            # The lease runs out by itself, and the next try finds everything as it was.
            raise
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the job's failure, not the worker's
            log.warning("job %s (%s) failed at try %d: %s", job.job_id, job.job_type, job.attempt, error)
            await self._db.write(fail, job, self._ports.clock.now_ms(), f"{type(error).__name__}: {error}")
        return True

    def _perform(self, conn: Connection, job: Job) -> None:
        if not still_held(conn, job):
            return
        now_ms = self._ports.clock.now_ms()
        self._handlers[job.job_type](conn, job, now_ms)
        finish(conn, job, now_ms)
        self._ports.faults.hit("outbox.before_commit")
