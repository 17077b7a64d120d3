"""The wheel in an empty environment: complete, startable, and serving an MCP client."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from wheel_kit import ROOT, Installed

import nova_mcp
from nova_mcp.server.manifest import load_manifest

PACKAGE = ROOT / "src" / "nova_mcp"


def package_files() -> set[str]:
    """What belongs to the package: everything in its folder but what Python leaves behind."""
    return {
        str(path.relative_to(ROOT / "src"))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def wheel_files(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel_files(wheel) == package_files()


@pytest.mark.parametrize(
    "data",
    [
        "server/manifest.json",
        "cli/completion.json",
        "browser/page/base/00_core.js",
        "core/page/data/consent_words.json",
        "memory/notes/data/sensitive_domains.txt",
        "memory/knowledge/data/platforms.json",
        "memory/facts/services.toml",
        "core/page/data/look_alikes.json",
        "storage/migrations/baseline.sql",
        "storage/migrations/env.py",
        "py.typed",
        "__init__.pyi",
    ],
)
def test_data_that_only_a_running_program_misses_is_in_the_wheel(wheel: Path, data: str) -> None:
    assert f"nova_mcp/{data}" in wheel_files(wheel)


def test_the_manifest_in_the_wheel_is_the_one_of_the_catalogue(wheel: Path) -> None:
    shipped = json.loads(zipfile.ZipFile(wheel).read("nova_mcp/server/manifest.json"))
    assert [tool["name"] for tool in shipped["tools"]] == [tool.name for tool in load_manifest().tools]


def test_a_wheel_made_from_the_source_distribution_is_the_same(built: Path, wheel: Path, tmp_path: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    out = tmp_path / "again"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    (again,) = out.glob("*.whl")
    assert wheel_files(again) == wheel_files(wheel)


def test_the_lock_holds_everything_the_wheel_declares(installed: Installed) -> None:
    lines = (ROOT / "requirements" / "runtime.lock").read_text().splitlines()
    locked = {canonicalize_name(Requirement(line.rstrip(" \\")).name) for line in lines if "==" in line}
    assert installed.dependencies <= locked


def test_the_package_comes_from_the_wheel_and_developers_tools_are_out_of_reach(installed: Installed) -> None:
    code = "import importlib.util as u, nova_mcp; print(nova_mcp.__file__, u.find_spec('pytest'), u.find_spec('httpx'))"
    done = installed.run("python", "-c", code)
    file, pytest_found, httpx_found = done.stdout.split()
    assert Path(file).is_relative_to(installed.folder)
    assert (pytest_found, httpx_found) == ("None", "None")


def test_the_version_is_printed(installed: Installed) -> None:
    done = installed.run("nova", "--version")
    assert (done.returncode, done.stdout) == (0, f"nova {nova_mcp.__version__}\n")


def test_every_command_can_be_loaded_with_what_is_declared(installed: Installed) -> None:
    done = installed.run("python", "-c", "from nova_mcp.cli.commands import *; [load(name) for name in COMMANDS]")
    assert done.returncode == 0, done.stderr


def test_every_public_name_can_be_imported(installed: Installed) -> None:
    done = installed.run("python", "-c", "from nova_mcp import *; print(open_nova.__name__)")
    assert done.stdout == "open_nova\n", done.stderr


def test_the_doctor_finds_everything_but_perhaps_a_browser(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("nova", "doctor", "--no-start", "--json", "--data-dir", tmp_path)
    found = {check["name"]: check["state"] for check in json.loads(done.stdout)["checks"]}
    assert {name for name, state in found.items() if state != "ok"} <= {"browser", "disk"}, done.stdout


@pytest.mark.browser
def test_the_doctors_trial_starts_a_server_and_reads_a_page_back(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("nova", "doctor", "--json", "--data-dir", tmp_path)
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["trial"]["state"] == "ok", found["trial"]


def test_the_tools_are_listed_from_the_manifest(installed: Installed) -> None:
    done = installed.run("nova", "tools", "--bundle", "all", "--json")
    listed = [tool["name"] for tool in json.loads(done.stdout)["tools"]]
    assert listed == [tool.name for tool in load_manifest().tools]


def test_generated_files_are_not_looked_for_outside_a_checkout(installed: Installed) -> None:
    done = installed.run("nova", "tools", "--check")
    assert (done.returncode, "source checkout" in done.stderr) == (2, True)


def test_the_store_is_made_by_the_migrations_in_the_wheel(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("nova", "db", "upgrade", "--data-dir", tmp_path).returncode == 0
    done = installed.run("nova", "db", "check", "--json", "--data-dir", tmp_path)
    assert json.loads(done.stdout)["ok"] is True


@pytest.mark.parametrize("words", [("nova", "serve"), ("nova-mcp",)])
async def test_a_client_lists_the_tools_and_makes_a_call(
    installed: Installed, tmp_path: Path, words: tuple[str, ...]
) -> None:
    launched = StdioServerParameters(
        command=str(installed.programs / words[0]),
        args=[*words[1:], "--data-dir", str(tmp_path)],
        env=installed.environment(),
    )
    async with Client(launched) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("nova.tools_bundle", {})
    assert {"nova.perceive", "nova.call"} <= names
    assert answer.is_error is not True
    assert answer.structured_content is not None
    assert answer.structured_content["ok"] is True
    recorded = json.loads(installed.run("nova", "events", "--json", "--data-dir", tmp_path).stdout.splitlines()[-1])
    assert recorded["toolName"] == "nova.tools_bundle"
