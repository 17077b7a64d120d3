"""`nova doctor`: finds what is broken, says how to mend it, and never prints a secret."""

import json
from pathlib import Path

import pytest
from cli_kit import Folder, nova, nova_process

from nova_mcp.cli.setup.checks import data_folder, free_space, shown_endpoint, shown_settings
from nova_mcp.settings import Settings


def examined(*flags: object) -> dict[str, dict[str, str]]:
    answer = json.loads(nova("doctor", "--no-start", "--json", *flags).stdout)
    return {check["name"]: check for check in answer["checks"]}


def test_a_healthy_folder_passes_and_every_setting_is_printed(folder: Folder) -> None:
    folder.call()
    done = nova_process("doctor", "--no-start", "--data-dir", folder.path)
    assert done.returncode == 0, done.stdout
    assert "1 record in 1 chain;" in done.stdout
    for name in ("data_dir", "store", "browser.headed", "gates.low_disk_mb", "http.port"):
        assert name in done.stdout


def test_looking_creates_nothing(tmp_path: Path) -> None:
    assert examined("--data-dir", tmp_path / "new")["store"]["state"] == "ok"
    assert not (tmp_path / "new").exists()


def test_a_damaged_store_is_broken_and_stays_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "nova.db").write_bytes(b"x" * 8192)
    done = nova_process("doctor", "--no-start", "--data-dir", tmp_path)
    assert done.returncode == 1
    assert "BROKEN  store" in done.stdout
    assert [file.name for file in tmp_path.glob("nova.db*")] == ["nova.db"]


def test_a_browser_that_is_not_there_is_broken_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOVA_BROWSER", str(tmp_path / "no-browser"))
    check = examined("--data-dir", tmp_path)["browser"]
    assert check["state"] == "broken"
    assert "--browser" in check["fix"]


def test_a_set_stop_and_a_token_others_can_read_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "STOP").touch()
    (tmp_path / "mcp.json").write_text("{}")
    (tmp_path / "mcp.json").chmod(0o644)
    checks = examined("--data-dir", tmp_path)
    assert (checks["emergency stop"]["state"], checks["emergency stop"]["fix"]) == ("warning", "`nova resume` lifts it")
    assert checks["HTTP token"]["fix"].startswith("chmod 600")


def test_a_folder_that_can_not_be_made_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert data_folder(tmp_path / "file" / "data").state == "broken"


def test_too_little_disk_is_a_warning_and_almost_none_is_broken(tmp_path: Path) -> None:
    plenty = 10**12
    low = Settings.model_validate({"data_dir": tmp_path, "gates": {"low_disk_mb": plenty}})
    none = Settings.model_validate({"data_dir": tmp_path, "gates": {"critical_disk_mb": plenty}})
    assert [free_space(settings).state for settings in (low, none)] == ["warning", "broken"]


SECRETS = {
    "store": "postgresql://nova:hunter2@127.0.0.1:1/nova",
    "cdp": "wss://me:hunter2@grid.test:9/k-hunter2?t=hunter2",
}


def test_no_secret_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOVA_CDP_ENDPOINT", SECRETS["cdp"])
    for form in ((), ("--json",)):
        done = nova_process("doctor", "--no-start", "--data-dir", tmp_path, "--store", SECRETS["store"], *form)
        assert done.returncode == 1
        assert "hunter2" not in done.stdout + done.stderr
        assert "grid.test:9" in done.stdout


def test_settings_are_shown_flat_with_addresses_only() -> None:
    shown = shown_settings(
        Settings.model_validate({"store": SECRETS["store"], "browser": {"cdp_endpoint": SECRETS["cdp"]}})
    )
    assert shown["browser.cdp_endpoint"] == "wss://grid.test:9/…"
    assert shown["store"] == "postgresql://nova:***@127.0.0.1:1/nova"
    assert shown_endpoint("http://127.0.0.1:9222") == "http://127.0.0.1:9222"
    assert shown_endpoint("http://[::1") == "(hidden)"


@pytest.mark.browser
def test_the_trial_starts_a_server_and_a_browser_and_reads_a_page_back(tmp_path: Path) -> None:
    done = nova_process("doctor", "--json", "--data-dir", tmp_path)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["trial"]["state"] == "ok", checks["trial"]
    assert done.returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["home"]
