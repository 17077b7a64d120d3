"""A pipeline with scripted tools, a clock that stands still and a real ledger; no browser is started."""

import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.calls.admission.admission import Admission
from nova_mcp.calls.model import Answer, CallRequest
from nova_mcp.calls.pipeline import Parts, Pipeline
from nova_mcp.core.clock import CallId, Ports
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.evidence.model import CallRecord, ServerId
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.evidence.recorder import Recorder, describe_server
from nova_mcp.evidence.targets.journal import MemoryJournal
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.memory.facts.policies import load_policies
from nova_mcp.memory.facts.service import FactKeeper
from nova_mcp.memory.journal.service import Journal
from nova_mcp.memory.journal.statistics.counters import count_contradiction
from nova_mcp.memory.journal.statistics.service import Statistician
from nova_mcp.memory.notes.note_memory import NoteMemory
from nova_mcp.memory.promotion.learning import Learning
from nova_mcp.memory.tasks.service import TaskMemory
from nova_mcp.secrets.store import SecretStore
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.catalogue import Catalogue, catalogue_of
from nova_mcp.tools.context import Memory
from nova_mcp.tools.spec import ToolSpec
from nova_mcp.verification.coordinator import Coordinator
from nova_mcp.verification.goals.register import Goals
from nova_mcp.verification.verifier import Verifier


class StillClock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> float:
        return float(self.now)


class CountingIds:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def call_id(self) -> CallId:
        return CallId(f"00000000-0000-7000-8000-{next(self._numbers):012d}")

    def token(self, size: int = 16) -> str:
        return f"{next(self._numbers):0{2 * size}x}"


@dataclass
class StoreFault:
    """Breaks the ledger's commit while it is armed."""

    armed: bool = False

    def hit(self, point: str) -> None:
        if self.armed and point == "ledger.before_commit":
            raise StoreUnavailable("full", "the disk is full", "free some space")


@dataclass
class Rig:
    """Everything a test may want to turn."""

    pipeline: Pipeline
    settings: Settings
    clock: StillClock
    fault: StoreFault
    db: Database
    browser: Browser
    progress: list[str] = field(default_factory=list)

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **request: Any) -> Answer:
        return await self.pipeline.run(
            CallRequest(tool=tool, arguments=arguments or {}, principal=request.pop("principal", "local"), **request)
        )

    async def records(self) -> list[CallRecord]:
        page = await self.db.read(events, EventFilter(limit=1000))
        return [call.record for call in page.calls if call.record is not None]


@pytest.fixture
async def make_rig(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    opened: list[Database] = []

    async def make(*specs: ToolSpec, policies: str = "", **changes: Any) -> Rig:
        (tmp_path / "policies.toml").write_text(policies)
        settings = Settings.model_validate({"data_dir": tmp_path, **changes})
        clock, fault = StillClock(), StoreFault()
        ports = Ports(clock, CountingIds(), fault)
        db = Database.open(f"sqlite:///{tmp_path / 'nova.db'}")
        opened.append(db)
        server_id = ServerId("server")
        recorder = Recorder(db, ports, server_id)
        await recorder.start(describe_server(server_id, clock.now_ms(), "test"))
        policy = NavigationPolicy()
        claims, home = ClaimBook(ports), BrowserHome(tmp_path, server_id)
        browser = Browser(settings.browser, home, MemoryJournal(), policy, ports, claims)
        catalogue: Catalogue = catalogue_of(specs)
        pipeline = Pipeline(
            Parts(
                settings,
                ports,
                server_id,
                catalogue,
                recorder,
                browser,
                Memory(
                    Verifier(
                        db,
                        recorder,
                        ports,
                        Coordinator(clock),
                        Goals(db, ports),
                        count_contradiction=count_contradiction,
                    ),
                    Journal(db, ports),
                    Statistician(db, clock),
                    FactKeeper(db, clock, policies=load_policies(tmp_path)),
                    Learning.over(db, clock),
                    TaskMemory.over(db, ports, settings),
                    NoteMemory.over(db, ports, settings.notes),
                    claims,
                ),
                SecretStore(tmp_path),
                Admission(settings, policy, clock),
                catalogue.listed(settings.tools),
            )
        )
        return Rig(pipeline, settings, clock, fault, db, browser)

    yield make
    for db in opened:
        await db.close()
