"""The composition root: the only place where objects are wired together."""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from nova_mcp import __version__
from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.calls.admission.admission import Admission
from nova_mcp.calls.answer_redaction import redacted_resource
from nova_mcp.calls.endings import store_failed
from nova_mcp.calls.model import Answer, CallRequest, ResourceContent
from nova_mcp.calls.pipeline import Parts, Pipeline
from nova_mcp.calls.running_calls import shutting_down
from nova_mcp.calls.stored_resources import Resources
from nova_mcp.core.clock import Ports, system_ports
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.core.processes import own_addresses
from nova_mcp.evidence.erasure import Eraser
from nova_mcp.evidence.janitor import Janitor, retention_policy
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.recorder import Recorder, describe_server
from nova_mcp.evidence.targets.store import targets_of_ended_servers
from nova_mcp.evidence.targets.stored_journal import StoredJournal
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.memory.claims.store import claims_of_ended_servers
from nova_mcp.memory.facts import retention as fact_endings
from nova_mcp.memory.facts.policies import load_policies
from nova_mcp.memory.facts.service import FactKeeper
from nova_mcp.memory.journal.collector import collecting
from nova_mcp.memory.journal.model import JobType
from nova_mcp.memory.journal.outbox_worker import HANDLERS, Handler, OutboxWorker
from nova_mcp.memory.journal.service import Journal
from nova_mcp.memory.journal.statistics.counters import Counters, count_contradiction
from nova_mcp.memory.journal.statistics.service import Statistician
from nova_mcp.memory.notes.note_memory import NoteMemory
from nova_mcp.memory.promotion.collector import HOOKS
from nova_mcp.memory.promotion.drafts.jobs import leaving_reasons, take_up
from nova_mcp.memory.promotion.learning import Learning
from nova_mcp.memory.retention import chores, holds, note_chores
from nova_mcp.memory.tasks.coverage.evidence_collector import EvidenceCollector
from nova_mcp.memory.tasks.coverage.evidence_store import target_ended
from nova_mcp.memory.tasks.service import TaskMemory
from nova_mcp.secrets.store import SecretStore, open_secrets
from nova_mcp.server.backend import Health
from nova_mcp.server.http.health import HealthCheck
from nova_mcp.server.http.origins import is_loopback
from nova_mcp.server.logs import hide_in_logs
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.catalogue import load_catalogue
from nova_mcp.tools.context import Memory
from nova_mcp.tools.learning.release_entry import saving
from nova_mcp.verification.coordinator import Coordinator
from nova_mcp.verification.goals.register import Goals
from nova_mcp.verification.goals.store import renew_after_act
from nova_mcp.verification.store import settle_recovered
from nova_mcp.verification.verifier import Verifier

log = logging.getLogger(__name__)

CLOSING_LIMIT_S = 8.0
RESTART_PAUSE_S = 1.0


def navigation_policy(settings: Settings) -> NavigationPolicy:
    """Private networks are open as far as Nova itself is closed: loopback only while it listens there alone."""
    exposed = not is_loopback(settings.http.host)
    roots = settings.browser.allow_file_roots
    return NavigationPolicy(
        allow_hosts=settings.browser.allow_hosts,
        deny_hosts=settings.browser.deny_hosts,
        # Also as written: an address is judged once before links are resolved.
        allow_file_roots=(*(os.path.realpath(root) for root in roots), *(str(root.absolute()) for root in roots)),
        private_network=settings.browser.private_network or ("deny" if exposed else "loopback"),
        own_ports=frozenset({settings.http.port, *_endpoint_port(settings.browser.cdp_endpoint)}),
        own_addresses=own_addresses() if exposed else frozenset(),
    )


def _endpoint_port(endpoint: str | None) -> tuple[int, ...]:
    """The port over which a browser elsewhere is driven: a page that reached it would drive the browser."""
    try:
        port = None if endpoint is None else urlsplit(endpoint).port
    except ValueError:
        port = None
    return () if port is None else (port,)


def job_handlers(learning: Learning) -> Mapping[JobType, Handler]:
    """Who does which job after a commit."""
    return {
        "finalize.noop": leaving_reasons(HANDLERS["finalize.noop"]),
        "finalize.memory.promote": take_up,
        "pks.domain.save": leaving_reasons(saving(learning)),
    }


Loop = Callable[[], Coroutine[None, None, None]]


class Nova:
    """The running program: everything a server needs behind one door."""

    def __init__(
        self, parts: Parts, db: Database, background: Iterable[Loop], early: Iterable[asyncio.Task[None]] = ()
    ) -> None:
        self._parts = parts
        self._db = db
        self._pipeline = Pipeline(parts)
        self._resources = Resources(db, parts.settings.data_dir)
        # Plain tasks, because the server may close Nova from another task than the one that built it.
        loops: tuple[Loop, ...] = (
            *background,
            partial(self._pipeline.running.watch_stop_file, parts.settings.stop_file),
            self._pipeline.passes.run,
        )
        self._background = [*early, *(asyncio.create_task(_keep_running(loop)) for loop in loops)]
        self._closed = False
        self._health = HealthCheck(db.dialect, parts.recorder.beat, parts.browser.health, parts.ports.clock)
        self._uncover = hide_in_logs(parts.secrets.redactor.text)

    @property
    def database(self) -> Database:
        return self._db

    async def call(self, request: CallRequest) -> Answer:
        return await self._pipeline.run(request)

    async def read_resource(self, uri: str, principal: str) -> ResourceContent | None:
        content = await self._resources.read(uri, principal)
        return None if content is None else redacted_resource(content, self._parts.secrets.redactor)

    async def warm(self) -> None:
        """Start the browser's driver, so that the first page comes sooner."""
        await self._parts.browser.warm()

    async def health(self) -> Health:
        """Whether calls can be served: store, driver and browser, each asked within a moment."""
        return await self._health.ask()

    async def close(self, reason: str) -> None:
        """End calls, browser and store in this order; what was answered stays recorded."""
        if self._closed:
            return
        self._closed = True
        with anyio.move_on_after(CLOSING_LIMIT_S, shield=True):
            self._pipeline.running.cancel(shutting_down())
            await self._pipeline.running.drained()
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            await self._parts.browser.aclose()
            await self._parts.recorder.stop(reason)
        with anyio.CancelScope(shield=True):
            await self._db.close()
        self._uncover()


async def _keep_running(loop: Loop) -> None:
    """The top of a background loop: a failure is told and the loop starts again."""
    while True:
        try:
            await loop()
        except Exception:
            log.exception("a background loop broke and starts again")
            await anyio.sleep(RESTART_PAUSE_S)


async def build(settings: Settings, ports: Ports | None = None, *, ahead: bool = False) -> Nova:
    """Open the store, explain what earlier servers left behind, and wire everything.

    `ahead` starts the browser's driver meanwhile, for a server whose first call is going to need it.
    """
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        db = await anyio.to_thread.run_sync(Database.open, settings.store_url)
    except OSError as error:
        raise store_failed(StoreUnavailable("readonly", f"{settings.data_dir}: {error.strerror or error}")) from error
    except StoreUnavailable as failure:
        raise store_failed(failure) from failure
    for notice in db.notices:
        log.error(notice)
    try:
        return await _wired(settings, ports or system_ports(), db, ahead=ahead)
    except StoreUnavailable as failure:
        await db.close()
        raise store_failed(failure) from failure


async def _wired(settings: Settings, ports: Ports, db: Database, *, ahead: bool) -> Nova:
    server_id = ServerId(ports.ids.token(16))
    tasks = TaskMemory.over(db, ports, settings)
    recorder = _recorder(db, ports, server_id, tasks)
    await recorder.start(describe_server(server_id, ports.clock.now_ms(), __version__))
    await recorder.recover()
    await db.write(targets_of_ended_servers, ports.clock.now_ms())
    await db.write(claims_of_ended_servers, ports.clock.now_ms(), tasks.learn_mode)
    await db.write(fact_endings.close_ended_targets, ports.clock.now_ms())
    secrets = await anyio.to_thread.run_sync(open_secrets, settings.data_dir)
    policy = navigation_policy(settings)
    claims = ClaimBook(ports, db, server_id, tasks.learn_mode)
    memory = await _memory(settings, ports, db, recorder, secrets, tasks, claims)
    ends = (fact_endings.target_ended, memory.notes.sites.target_ended)
    journal = StoredJournal(
        db,
        server_id,
        keep_raw_urls=settings.keep_raw_urls,
        redactor=secrets.redactor,
        on_end=ends,
        on_left=(target_ended,),
    )
    home = BrowserHome(settings.data_dir, server_id, keep_first=not settings.browser.ephemeral)
    browser = Browser(settings.browser, home, journal, policy, ports, claims)
    early = [asyncio.create_task(_warmed(browser))] if ahead else []
    catalogue = await anyio.to_thread.run_sync(load_catalogue)
    parts = Parts(
        settings=settings,
        ports=ports,
        server_id=server_id,
        catalogue=catalogue,
        recorder=recorder,
        browser=browser,
        memory=memory,
        secrets=secrets,
        admission=Admission(settings, policy, ports.clock),
        listed=catalogue.listed(settings.tools),
    )
    return Nova(parts, db, [browser.run, recorder.heartbeat, recorder.mend, *_upkeep(parts, db)], early)


def _recorder(db: Database, ports: Ports, server_id: ServerId, tasks: TaskMemory) -> Recorder:
    """What happens in the transaction of every call, in this order."""
    evidence = EvidenceCollector()
    collected = collecting(HOOKS, Counters().count)
    also = (settle_recovered, renew_after_act, collected, evidence.collect, tasks.learn_mode.count)
    return Recorder(db, ports, server_id, also=also, missed=evidence.missed, first=evidence.mark_gaps)


async def _memory(
    settings: Settings,
    ports: Ports,
    db: Database,
    recorder: Recorder,
    secrets: SecretStore,
    tasks: TaskMemory,
    claims: ClaimBook,
) -> Memory:
    """Everything that is kept from call to call, and who looks after it."""
    policies = await anyio.to_thread.run_sync(load_policies, settings.data_dir)
    return Memory(
        verifier=Verifier(
            db,
            recorder,
            ports,
            Coordinator(ports.clock),
            Goals(db, ports),
            secrets.redactor.text,
            count_contradiction,
        ),
        journal=Journal(db, ports),
        statistician=Statistician(db, ports.clock),
        facts=FactKeeper(
            db,
            ports.clock,
            policies=policies,
            hides=secrets.redactor.text,
            keep_raw_urls=settings.keep_raw_urls,
            multi_tenant=settings.notes.multi_tenant_domains,
        ),
        learning=Learning.over(db, ports.clock, settings.learning.consent_gates),
        tasks=tasks,
        notes=NoteMemory.over(db, ports, settings.notes),
        claims=claims,
    )


def _upkeep(parts: Parts, db: Database) -> list[Loop]:
    """What is done between calls: retention, and the jobs that a commit left behind."""
    settings, clock = parts.settings, parts.ports.clock
    kept = [*chores(settings.retention), *note_chores(settings.notes)]
    by = Eraser(parts.server_id, parts.ports.ids.call_id, "retention of a server")
    janitor = Janitor(db, clock, retention_policy(settings.retention), by, chores=kept, keeping=holds)
    worker = OutboxWorker(db, parts.ports, parts.server_id, job_handlers(parts.memory.learning))
    return [janitor.run, worker.run]


async def _warmed(browser: Browser) -> None:
    """The driver is another program: it starts while this one still loads its tools."""
    try:
        await browser.warm()
    except Exception:
        # The first call that needs a page tries again and tells its caller.
        log.warning("the browser's driver did not start ahead of time", exc_info=True)
