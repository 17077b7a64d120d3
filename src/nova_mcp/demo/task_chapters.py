"""Chapters about a task over two days: what an agent says of it, what Nova saw of it, and when it is done."""

from typing import Any

from nova_mcp.core.keywords import some
from nova_mcp.demo.site_answers import HANDBOOK
from nova_mcp.demo.stage import Agent, Stage

PAGES = tuple(HANDBOOK)
READ_FIRST = 1
SCAN = "nova_full_page_text_v1"


def _read_everything(pages: list[str]) -> dict[str, Any]:
    done_when = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
    task = {"taskType": "audit", "displayName": "Read the handbook", "goal": "Read every page of the handbook."}
    return {
        "adHocContext": {**task, "completionCondition": done_when},
        "targetUrl": pages[0],
        "unitSource": {"kind": "explicit", "explicitUrls": pages, "freezeAfterPopulate": True},
    }


def _addresses(stage: Stage) -> list[str]:
    return [stage.site.url("wiki", path) for path in PAGES]


def _served(stage: Stage) -> int:
    return sum(stage.site.received("wiki", "GET", path) > 0 for path in PAGES)


def _counted(stage: Stage) -> str:
    return f"{_served(stage)} of {some(len(PAGES), 'page')} ever asked for"


async def _read(agent: Agent, pages: list[str]) -> None:
    for page in pages:
        await agent.call("navigate", url=page)
        await agent.call("coverage_scan", scanId=SCAN)


async def claimed_too_early(stage: Stage) -> None:
    """Cleo reads one page of four and says that all are done."""
    cleo, pages = stage.agent("cleo"), _addresses(stage)
    run = str((await cleo.call("task_instance_create", **_read_everything(pages))).body.get("instanceId"))
    await _read(cleo, pages[:READ_FIRST])
    claims = [{"url": page, "status": "checked"} for page in pages]
    said = {"instanceId": run, "expectedInstanceRev": 0, "clientEventId": "all-done", "unitUpdates": claims}
    await cleo.call("task_instance_progress", **said)
    early = await cleo.call("task_instance_complete", instanceId=run, expectedInstanceRev=1, clientEventId="finished")
    refused = early.body.get("completed") is False and early.reason == "url_units_remaining"
    right = refused and _served(stage) == READ_FIRST
    told = early.flat.partition(" · →")[0]
    stage.tell('"All done", says an agent that has read one page of four', told, _counted(stage), expected=right)


async def proven(stage: Stage) -> None:
    """The next day: told what is open, she reads what is left, and may complete it."""
    cleo, pages = stage.agent("cleo"), _addresses(stage)
    told = await cleo.call("get_instructions")
    run = str(((told.body.get("taskAwareness") or {}).get("activeInstances") or [{}])[0].get("instanceId"))
    left = (told.body.get("coverageContract") or {}).get("remaining")
    line = next((line for line in told.text.splitlines() if run in line), "no open run")
    right = left == len(pages) - READ_FIRST
    stage.tell("The next day she asks where she was", line.strip("- "), expected=right)
    await _read(cleo, pages[READ_FIRST:])
    done = await cleo.call(
        "task_instance_complete",
        instanceId=run,
        expectedInstanceRev=1,
        clientEventId="finished-now",
    )
    right = done.body.get("completed") is True and _served(stage) == len(pages)
    stage.tell("Done, once every page was read", done.flat.partition(" (")[0], _counted(stage), expected=right)
