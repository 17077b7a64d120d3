"""Putting the program together: a store that can't be used is said plainly, and nothing is left behind."""

import sqlite3
import threading
from pathlib import Path

import pytest

from nova_mcp.app import build
from nova_mcp.calls.stored_resources import Resources
from nova_mcp.errors import Unavailable
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database, Tuning
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.browse.screenshot import shelf_mark


async def test_a_data_folder_that_is_a_file_is_named_with_a_hint(tmp_path: Path) -> None:
    wrong = tmp_path / "data"
    wrong.write_text("")
    with pytest.raises(Unavailable) as refused:
        await build(Settings(data_dir=wrong))
    assert refused.value.reason_code == "store.unavailable"
    assert str(wrong) in refused.value.message
    assert refused.value.hint


async def test_a_store_of_a_newer_nova_is_refused_with_a_hint(tmp_path: Path) -> None:
    with Database.open(f"sqlite:///{tmp_path / 'nova.db'}"):
        pass
    with sqlite3.connect(tmp_path / "nova.db") as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
    newer.close()
    with pytest.raises(Unavailable) as refused:
        await build(Settings(data_dir=tmp_path))
    assert refused.value.reason_code == "store.unavailable"
    assert "upgrade" in refused.value.hint


async def test_a_start_that_fails_half_way_leaves_no_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def locked(*_: object) -> None:
        raise StoreUnavailable("locked")

    monkeypatch.setattr(Recorder, "recover", locked)
    before = set(threading.enumerate())
    with pytest.raises(Unavailable):
        await build(Settings(data_dir=tmp_path))
    started = set(threading.enumerate()) - before
    assert not [thread.name for thread in started if thread.name.startswith("nova-")]


async def test_evidence_that_cannot_be_read_now_is_not_called_a_defect(tmp_path: Path) -> None:
    with Database.open(f"sqlite:///{tmp_path / 'nova.db'}", tuning=Tuning(busy_timeout_ms=50)) as db:
        (tmp_path / "nova.db").unlink()
        with pytest.raises(Unavailable) as refused:
            await Resources(db, tmp_path).read("nova://ledger/00000000-0000-7000-8000-000000000001", "local")
        assert refused.value.reason_code == "store.unavailable"


async def test_a_picture_is_shown_only_to_the_principal_that_took_it(tmp_path: Path) -> None:
    name = f"{shelf_mark('ada')}{'0' * 32}"
    folder = tmp_path / "screenshots"
    folder.mkdir()
    (folder / f"{name}.png").write_bytes(b"picture")
    with Database.open(f"sqlite:///{tmp_path / 'nova.db'}") as db:
        resources = Resources(db, tmp_path)
        mine = await resources.read(f"nova://screenshot/{name}", "ada")
        assert mine is not None
        assert mine.data == b"picture"
        assert await resources.read(f"nova://screenshot/{name}", "bob") is None
        assert await resources.read(f"nova://screenshot/{'0' * 32}", "ada") is None
