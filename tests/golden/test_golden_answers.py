"""Golden answers: one success and one refusal of every tool, in both protocol eras.

`make golden` rewrites the files. A changed file is a changed contract, so its commit gives the reason.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from golden_kit import ERAS, KINDS, Agent, agent_in, differences, golden_of
from loop_kit import shop
from scenario import PAGES, play

from nova_mcp.tools.catalogue import load_catalogue

pytestmark = pytest.mark.browser

ANSWERS = Path(__file__).parent / "answers"
WRITE = os.environ.get("NOVA_WRITE_GOLDEN") == "1"
TOOLS = sorted(spec.name for spec in load_catalogue())


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def _answers(era: str, data_dir: Path) -> dict[str, dict[str, Any]]:
    with shop() as site:
        site.pages.update(PAGES)
        async with agent_in(era, data_dir, site) as agent:
            await play(agent)
            return _golden(agent)


def _golden(agent: Agent) -> dict[str, dict[str, Any]]:
    return {
        tool: {kind: golden_of(recorded[kind], agent) for kind in KINDS if kind in recorded}
        for tool, recorded in agent.answers.items()
    }


@pytest.fixture(scope="module")
async def answers(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> dict[str, dict[str, Any]]:
    """The answers of this version by tool and protocol era."""
    by_era = {era: await _answers(era, tmp_path_factory.mktemp(era)) for era in ERAS}
    current = {tool: {era: by_era[era].get(tool, {}) for era in ERAS} for tool in TOOLS}
    if WRITE:
        ANSWERS.mkdir(exist_ok=True)
        for tool in TOOLS:
            text = json.dumps(_shared(current[tool]), ensure_ascii=False, indent=1)
            (ANSWERS / f"{tool}.json").write_text(text + "\n", encoding="utf-8")
    return current


def _shared(by_era: dict[str, Any]) -> dict[str, Any]:
    """Merge the eras where their answers are equal."""
    first, *rest = by_era.values()
    return {"both": first} if all(other == first for other in rest) else by_era


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_tool_answers_as_it_always_did(answers: dict[str, dict[str, Any]], tool: str) -> None:
    golden = json.loads((ANSWERS / f"{tool}.json").read_text(encoding="utf-8"))
    changed = [
        difference
        for era in ERAS
        for difference in differences(golden.get("both", golden.get(era)), answers[tool][era], era)
    ]
    assert not changed, "\n".join(changed)
    assert _shared(answers[tool]) == golden


@pytest.mark.parametrize("tool", TOOLS)
async def test_every_tool_has_a_success_and_a_refusal(answers: dict[str, dict[str, Any]], tool: str) -> None:
    assert [sorted(answers[tool][era]) for era in ERAS] == [sorted(KINDS)] * len(ERAS)


def test_there_is_no_golden_file_of_a_removed_tool() -> None:
    assert sorted(path.stem for path in ANSWERS.glob("*.json")) == TOOLS
