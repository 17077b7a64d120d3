"""The examples: each is run as its reader would run it, on its own small shop."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from document_kit import ROOT

import nova_mcp

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "small_site.py")
SAID = {
    "agent_loop.py": ("guarded_commit.missing_contract", "orders that reached the shop: ['Grace']"),
    "embed.py": ("verified", "guarded_commit.duplicate_suspected", "orders that reached the shop: ['Ada']"),
    "over_http.py": ("tabs: []",),
    "over_stdio.py": ("status: ok", "Bread without haste"),
    "pydantic_ai_agent.py": ("The page says:", "Weather for sailors"),
}


def test_every_example_is_run_here_and_named_in_the_document_about_embedding() -> None:
    assert {path.name for path in EXAMPLES} == set(SAID)
    text = (ROOT / "docs" / "embedding.md").read_text()
    assert [path.name for path in EXAMPLES if f"examples/{path.name}" not in text] == []


@pytest.mark.browser
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_does_what_it_says(path: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NOVA_")}
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [words for words in SAID[path.name] if words not in done.stdout] == [], done.stdout


def test_the_public_names_are_those_the_document_lists() -> None:
    text = (ROOT / "docs" / "embedding.md").read_text()
    table = text[text.index("| name | is |") : text.index("Importing the package loads none of it")]
    told = {name for line in table.strip().splitlines() for name in re.findall(r"`(\w+)[(`]", line.split("|")[1])}
    assert told == set(nova_mcp.__all__)
    assert all(getattr(nova_mcp, name) is not None for name in nova_mcp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = nova_mcp.nonsense


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, nova_mcp; print([name for name in sys.modules if name.startswith('nova_mcp.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
