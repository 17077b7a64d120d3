"""Records the answers of every tool and replaces what differs from run to run (ids, times, ports) by placeholders."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from loop_kit import SECRET, ShiftedClock, Shop
from mcp import Client

from nova_mcp.app import Nova, build
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import Settings

Kind = Literal["success", "refusal"]
KINDS: tuple[Kind, ...] = ("success", "refusal")
ERAS = {"legacy": "legacy", "modern": "auto"}
SETTINGS: dict[str, Any] = {
    "tools": "all",
    "enable_eval": True,
    "notes": {"browser_memory": {"users": ["local"]}},
}

# Numbers that depend on a clock, a picture or the machine.
MEASURED = re.compile(
    r"^(?:ms|windowMs|retryAfterMs|leaseRemainingMs|bytes|decayScore|domNodes)$|(?i:(?:elapsed|duration|waited|settle|age)\w*Ms$)"
)
# Which of several signals shows an effect first depends on timing.
OBSERVED = frozenset({"channels", "dispatchProof"})
IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9A-Za-z])[0-9a-f]{12,64}(?![0-9A-Za-z])"
    r"|(?<=[_:.-])[0-9a-f]{8,64}(?![0-9A-Za-z])"
)
TIMES = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|\+00:00)|(?<!\d)1[6-9]\d{11}(?!\d)")
# An answer names the new address only where the move was among the signals seen.
MOVED = re.compile(r" · now https?://[^\s·]+")
PASSED = re.compile(r"(?<![\w.])\d+(?:\.\d+)? ?ms\b")


@dataclass
class RecordedAnswer:
    """One answer as a client received it."""

    arguments: Mapping[str, Any]
    structured: dict[str, Any]
    text: str
    pictures: int
    is_error: bool


@dataclass
class Agent:
    """A client that records one success and one refusal of every tool."""

    client: Client
    nova: Nova
    clock: ShiftedClock
    shop: Shop
    data_dir: Path
    answers: dict[str, dict[Kind, RecordedAnswer]] = field(default_factory=dict)
    # Ports of sites that the story opened beside the shop.
    ports: list[str] = field(default_factory=list)

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed, without recording the answer."""
        recorded = await self._call(tool, arguments)
        assert not recorded.is_error, (tool, recorded.structured)
        return recorded.structured

    async def success(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        recorded = await self._call(tool, arguments)
        assert not recorded.is_error, (tool, recorded.structured)
        assert recorded.structured.get("ok", True), (tool, recorded.structured)
        return self._record("success", tool, recorded)

    async def refusal(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        recorded = await self._call(tool, arguments)
        assert recorded.is_error or not recorded.structured["ok"], (tool, recorded.structured)
        return self._record("refusal", tool, recorded)

    def _record(self, kind: Kind, tool: str, recorded: RecordedAnswer) -> dict[str, Any]:
        answers = self.answers.setdefault(tool, {})
        assert kind not in answers, f"a second {kind} of {tool}"
        answers[kind] = recorded
        return recorded.structured

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> RecordedAnswer:
        answer = await self.client.call_tool(f"nova.{tool}", dict(arguments))
        assert answer.structured_content is not None
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        pictures = sum(block.type == "image" for block in answer.content)
        return RecordedAnswer(arguments, dict(answer.structured_content), text, pictures, bool(answer.is_error))

    async def show(self, path: str) -> str:
        """Open a page of the shop, perceive it and return the tab's id."""
        opened = await self.call("navigate", url=self.shop.url(path))
        await self.call("perceive")
        return str(opened["targetId"])


@asynccontextmanager
async def agent_in(era: str, data_dir: Path, shop: Shop) -> AsyncIterator[Agent]:
    (data_dir / "secrets.toml").write_text(f'[shop]\nvalue = "{SECRET}"\nhosts = ["127.0.0.1"]\n')
    (data_dir / "secrets.toml").chmod(0o600)
    uploads = data_dir / "uploads"
    uploads.mkdir()
    (uploads / "plan.txt").write_text("plan")
    clock = ShiftedClock()
    chosen = Settings.model_validate({"data_dir": data_dir, **SETTINGS})
    nova = await build(chosen, Ports(clock, SystemIds(clock)))

    async def backend() -> Nova:
        return nova

    try:
        async with Client(build_server(load_manifest(), chosen, Wiring(backend=backend)), mode=ERAS[era]) as client:
            yield Agent(client, nova, clock, shop, data_dir)
    finally:
        await nova.close("test")


class Placeholders:
    """Gives equal values the same placeholder within one answer."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = dict(known)
        self._assigned: dict[str, str] = {}

    def text(self, text: str) -> str:
        for value, name in self._known.items():
            text = text.replace(value, name)
        text = TIMES.sub("<time>", MOVED.sub("", text))
        text = PASSED.sub("<n> ms", text)
        return IDS.sub(lambda hit: self._assigned.setdefault(hit[0], f"<id{len(self._assigned) + 1}>"), text)

    def value(self, value: Any, key: str = "") -> Any:
        if key in OBSERVED and value is not None:
            return f"<{key}>"
        if isinstance(value, dict):
            return {self.text(name): self.value(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, key) for inner in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or value is None:
            return value
        return "<n>" if MEASURED.search(key) or value > 1_600_000_000_000 else value


def golden_of(recorded: RecordedAnswer, agent: Agent) -> dict[str, Any]:
    ports = dict.fromkeys((agent.shop.base.rpartition(":")[2], *agent.ports), "PORT")
    names = Placeholders({**ports, str(agent.data_dir): "DATA"})
    text = names.text(recorded.text)
    # A text that repeats the structured answer is not compared twice.
    same = _is_json(recorded.text) and json.loads(recorded.text) == recorded.structured
    return {
        "arguments": names.value(dict(recorded.arguments)),
        "isError": recorded.is_error,
        "structured": names.value(recorded.structured),
        "text": "the same as structured" if same else text.split("\n"),
        **({"pictures": recorded.pictures} if recorded.pictures else {}),
    }


def differences(golden: Any, current: Any, path: str) -> list[str]:
    """Name each place where two JSON values differ, with both values."""
    if isinstance(golden, dict) and isinstance(current, dict):
        keys = dict.fromkeys([*golden, *current])
        return [line for key in keys for line in differences(golden.get(key), current.get(key), f"{path}.{key}")]
    if isinstance(golden, list) and isinstance(current, list) and len(golden) == len(current):
        pairs = enumerate(zip(golden, current, strict=True))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{path}[{index}]")]
    return [] if golden == current else [f"{path}: {golden!r} is now {current!r}"]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
