"""Golden contracts: the published tool schemas of both protocol eras and every reason code with its error number."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from golden_kit import ERAS, SETTINGS
from mcp import Client

from nova_mcp.errors import FAMILIES, CommitRefused, Killed
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import Settings

FOLDER = Path(__file__).parent
WRITE = os.environ.get("NOVA_WRITE_GOLDEN") == "1"


def golden(name: str, current: Any) -> Any:
    file = FOLDER / name
    if WRITE:
        file.write_text(json.dumps(current, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tools", ["core", "all"])
async def test_tools_are_published_with_the_same_schemas(tmp_path: Path, era: str, tools: str) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path, **SETTINGS, "tools": tools})
    async with Client(build_server(load_manifest(), settings, Wiring(backend=_unused)), mode=ERAS[era]) as client:
        listed = (await client.list_tools()).tools
    current = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
    assert current == golden(f"tools_{tools}.json", current)


async def _unused() -> Any:
    raise AssertionError("listing tools needs no backend")


def test_reasons_go_out_under_the_same_numbers() -> None:
    families = (*FAMILIES, CommitRefused, Killed)
    current = {str(family.error_code): [] for family in families}
    for family in families:
        current[str(family.error_code)] += sorted(family.reasons)
    current = {code: sorted(set(reasons)) for code, reasons in sorted(current.items())}
    assert current == golden("reasons.json", current)
