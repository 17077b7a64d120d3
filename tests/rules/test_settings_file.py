"""The settings file: only its owner decides what Nova may do."""

import os
from pathlib import Path

import pytest

from nova_mcp.settings import CONFIG_FILE, SettingsError, load_settings


def written(folder: Path, text: str, mode: int) -> Path:
    path = folder / CONFIG_FILE
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o644, 0o640])
def test_a_file_that_only_its_owner_can_change_is_read(tmp_path: Path, mode: int):
    written(tmp_path, 'log_level = "info"\n', mode)
    assert load_settings({"data_dir": tmp_path}, {}).log_level == "info"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o660])
def test_a_file_that_others_can_change_is_refused_with_the_cure(tmp_path: Path, mode: int):
    path = written(tmp_path, 'log_level = "info"\n', mode)
    with pytest.raises(SettingsError, match=f"chmod 600 '{path}'"):
        load_settings({"data_dir": tmp_path}, {})


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_password_of_the_store_that_others_can_read_is_refused(tmp_path: Path, mode: int):
    written(tmp_path, 'store = "postgresql://nova:hunter2-long@db.example/nova"\n', mode)
    with pytest.raises(SettingsError) as caught:
        load_settings({"data_dir": tmp_path}, {})
    assert "hunter2" not in str(caught.value)
    written(tmp_path, 'store = "postgresql://nova@db.example/nova"\n', mode)
    assert load_settings({"data_dir": tmp_path}, {}).store_url.endswith("@db.example/nova")


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path, 'log_level = "info"\n', 0o644)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    if owner:
        with pytest.raises(SettingsError, match="belongs to another user"):
            load_settings({"data_dir": tmp_path}, {})
        return
    os.chown(path, 12_345, 12_345)
    with pytest.raises(SettingsError, match="belongs to another user"):
        load_settings({"data_dir": tmp_path}, {})
