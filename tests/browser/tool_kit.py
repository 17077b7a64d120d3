"""Calls of a few tools through the whole pipeline on a browser that a test already has."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nova_mcp.browser.process.runtime import Browser
from nova_mcp.calls.admission.admission import Admission
from nova_mcp.calls.model import Answer, CallRequest
from nova_mcp.calls.pipeline import Parts, Pipeline
from nova_mcp.core.clock import Ports, system_ports
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.evidence.recorder import Recorder, describe_server
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
from nova_mcp.tools.catalogue import catalogue_of
from nova_mcp.tools.context import Memory
from nova_mcp.tools.spec import ToolSpec
from nova_mcp.verification.coordinator import Coordinator
from nova_mcp.verification.goals.register import Goals
from nova_mcp.verification.verifier import Verifier


@dataclass
class Kit:
    """One client of a pipeline."""

    pipeline: Pipeline
    db: Database
    principal: str

    async def answer(self, tool: str, **arguments: Any) -> Answer:
        return await self.pipeline.run(CallRequest(tool=f"nova.{tool}", arguments=arguments, principal=self.principal))

    async def call(self, tool: str, **arguments: Any) -> Any:
        return (await self.answer(tool, **arguments)).structured

    async def records(self) -> list[Any]:
        page = await self.db.read(events, EventFilter(limit=1000))
        return [call.record for call in page.calls if call.record is not None]


@asynccontextmanager
async def tool_kit(
    data_dir: Path,
    browser: Browser,
    specs: tuple[ToolSpec, ...],
    principal: str,
    ports: Ports | None = None,
    **settings: Any,
) -> AsyncIterator[Kit]:
    ports = ports or system_ports()
    chosen = Settings.model_validate({"data_dir": data_dir, **settings})
    db = Database.open(f"sqlite:///{data_dir / 'calls.db'}")
    server_id = ServerId("server_test")
    recorder = Recorder(db, ports, server_id)
    await recorder.start(describe_server(server_id, ports.clock.now_ms(), "test"))
    catalogue = catalogue_of(specs)
    pipeline = Pipeline(
        Parts(
            settings=chosen,
            ports=ports,
            server_id=server_id,
            catalogue=catalogue,
            recorder=recorder,
            browser=browser,
            memory=Memory(
                verifier=Verifier(
                    db,
                    recorder,
                    ports,
                    Coordinator(ports.clock),
                    Goals(db, ports),
                    count_contradiction=count_contradiction,
                ),
                journal=Journal(db, ports),
                statistician=Statistician(db, ports.clock),
                facts=FactKeeper(db, ports.clock),
                learning=Learning.over(db, ports.clock),
                tasks=TaskMemory.over(db, ports, chosen),
                notes=NoteMemory.over(db, ports, chosen.notes),
                claims=browser.claims,
            ),
            secrets=SecretStore(data_dir),
            admission=Admission(chosen, browser.policy, ports.clock),
            listed=catalogue.listed("core"),
        )
    )
    try:
        yield Kit(pipeline, db, principal)
    finally:
        await db.close()
