"""The examples: each is run as its reader would run it, on its own small shop."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from document_kit import ROOT

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "small_site.py")
SAID = {
    "agent_loop.py": ("guarded_commit.missing_contract", "orders that reached the shop: ['Grace']"),
    "embed.py": ("verified", "guarded_commit.duplicate_suspected", "orders that reached the shop: ['Ada']"),
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
