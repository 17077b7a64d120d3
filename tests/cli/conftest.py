"""Fixtures of the command line's tests."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova_mcp.storage.engine import Database

sys.path.insert(0, str(Path(__file__).parent))

from cli_kit import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    path = tmp_path / "data"
    with Database.open(f"sqlite:///{path / 'nova.db'}") as db:
        yield Folder(path, db)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the person who runs the tests reaches a command, and no command reaches their home."""
    for name in [name for name in os.environ if name.startswith(("NOVA_", "CODEX_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
