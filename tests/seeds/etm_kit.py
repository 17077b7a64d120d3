"""Runs of tasks as a client starts and reports them."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from loop_kit import Server

_numbers = count(1)


def condition(mode: str = "exhaustive", kind: str = "item", **more: Any) -> dict[str, Any]:
    stop = (
        {"stopMetric": "all_units_processed"}
        if mode == "exhaustive"
        else {"stopMetric": "checked_units", "stopValue": 1}
    )
    return {"coverageMode": mode, "unitKind": kind, **stop, **more}


def ad_hoc(mode: str = "exhaustive", kind: str = "item", **more: Any) -> dict[str, Any]:
    return {
        "taskType": "audit",
        "displayName": "Look around",
        "goal": "See what is there",
        "completionCondition": more.pop("completionCondition", condition(mode, kind)),
        **more,
    }


def event() -> str:
    return f"event-{next(_numbers)}"


@dataclass
class Run:
    """A run, its revision as the client knows it, and an agent that works on it."""

    server: Server
    instance_id: str
    rev: int = 0
    agent: str = "default"

    @classmethod
    async def new(cls, server: Server, context: dict[str, Any] | None = None, **arguments: Any) -> "Run":
        told = await server.call("task_instance_create", adHocContext=context or ad_hoc(), **arguments)
        assert told["ok"], told
        return cls(server, told["instanceId"], 0, arguments.get("agentId", "default"))

    async def raw(self, tool: str, **arguments: Any) -> Any:
        """The answer as the protocol has it."""
        sent = {"instanceId": self.instance_id, "agentId": self.agent, **arguments}
        return await self.server.client.call_tool(f"nova.task_instance_{tool}", sent)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.raw(tool, **arguments)
        assert answer.is_error is ("errorCode" in answer.structured_content)
        return dict(answer.structured_content)

    async def change(self, tool: str, **arguments: Any) -> dict[str, Any]:
        told = await self.call(tool, **{"expectedInstanceRev": self.rev, "clientEventId": event(), **arguments})
        if told["ok"]:
            self.rev = told["instanceRev"]
        return told

    async def report(self, **arguments: Any) -> dict[str, Any]:
        return await self.change("progress", **arguments)

    async def done(self, **arguments: Any) -> dict[str, Any]:
        """A report that has to be taken."""
        told = await self.report(**arguments)
        assert told["ok"], told
        return told

    async def get(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("get", **arguments)

    async def verify(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("verify", **arguments)

    async def complete(self, **arguments: Any) -> dict[str, Any]:
        return await self.change("complete", **arguments)

    async def abort(self, **arguments: Any) -> dict[str, Any]:
        return await self.change("abort", **{"reason": "not needed", **arguments})


def units(*keys: str) -> list[dict[str, Any]]:
    return [{"unitKey": key} for key in keys]


def to(status: str, *keys: str, **more: Any) -> list[dict[str, Any]]:
    return [{"unitKey": key, "status": status, **more} for key in keys]
