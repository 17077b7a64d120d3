"""The documents: links lead somewhere, named tests, settings and commands exist, and what can be run is run."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command_kit import line_problems, nova_problems
from document_kit import ROOT, Block, anchors, documents, every_block, prose

from nova_mcp.errors import FAMILIES
from nova_mcp.memory.facts.policies import load_policies
from nova_mcp.secrets.store import open_secrets
from nova_mcp.server.http.bearer_tokens import FILE_NAME, TokenFile
from nova_mcp.settings import Settings, load_settings

BLOCKS = every_block()
SHELL = ("sh", "bash", "console")
LANGUAGES = {*SHELL, "python", "json", "toml", "yaml", "text", ""}
LIMIT_S = 180


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def chosen(*marks: str | None, languages: tuple[str, ...] | None = None) -> list[Block]:
    return [block for block in BLOCKS if block.mark in marks and (languages is None or block.language in languages)]


@pytest.mark.parametrize("path", documents(), ids=named)
def test_every_relative_link_leads_to_a_file_and_its_heading(path: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (heading and there.suffix == ".md" and heading not in anchors(there)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("path", documents(), ids=named)
def test_every_picture_that_is_shown_was_made(path: Path) -> None:
    shown = re.findall(r'(?:src|srcset)="([^":]+)"', prose(path)) + re.findall(r"!\[[^\]]*\]\(([^)]+)\)", prose(path))
    assert [picture for picture in shown if not (path.parent / picture).is_file()] == [], "run `make screenshots`"


@pytest.mark.parametrize("path", documents(), ids=named)
def test_every_test_and_file_that_is_named_exists(path: Path) -> None:
    missing = []
    for place in re.findall(r"`((?:tests|bench|examples|scripts|src)/[\w./-]+(?:::\w+)?)`", prose(path)):
        file, _, name = place.partition("::")
        there = ROOT / file
        if not there.exists() or (
            name and not re.search(rf"^(?:async )?def {name}\b", there.read_text(), re.MULTILINE)
        ):
            missing.append(place)
    assert missing == []


@pytest.mark.parametrize("path", documents(), ids=named)
def test_every_command_in_the_text_exists(path: Path) -> None:
    problems = []
    for said in re.findall(r"`((?:nova|nova-mcp|make|uvx|python -m bench) [^`\n]+)`", prose(path)):
        # Forms like `nova stop/resume` and `nova notes add …` name several or leave something out.
        if not re.search(r"[…/|\[]", said) or said.startswith("uvx"):
            problems += line_problems(said)
    assert problems == []


@pytest.mark.parametrize("path", [path for path in documents() if path.name != "CHANGELOG.md"], ids=named)
def test_every_setting_in_the_text_exists(path: Path) -> None:
    kinds = {name: field.annotation for name, field in Settings.model_fields.items()}
    known = {f"{name}.{inner}" for name, kind in kinds.items() for inner in getattr(kind, "model_fields", ())}
    # Reason codes have the same form.
    known |= {reason for family in FAMILIES for reason in family.reasons}
    said = re.findall(rf"`((?:{'|'.join(kinds)})\.\w+)`", prose(path))
    assert [name for name in said if name not in known and not name.endswith((".py", ".md", ".toml"))] == []


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_has_a_language_that_is_looked_after_and_an_honest_mark(block: Block) -> None:
    assert block.language in LANGUAGES
    if block.language == "python":
        assert block.mark is not None, "say whether it is run, from a file, or why not"
    if block.mark in ("from", "file", "not run"):
        assert block.word, "the comment leaves out what it should name"
    if block.mark == "run":
        assert block.language in ("python", *SHELL)
        assert block.word in (None, "browser")


@pytest.mark.parametrize("block", chosen(None, languages=SHELL), ids=str)
def test_shown_commands_exist_with_their_flags(block: Block) -> None:
    joined = re.sub(r"\\\n\s*", " ", block.text)
    lines = [re.sub(r"(^|\s)#.*$", "", line) for line in joined.splitlines()]
    assert [problem for line in lines if line.strip() for problem in line_problems(line)] == []


@pytest.mark.parametrize("block", chosen("from"), ids=str)
def test_shown_code_stands_in_the_file_it_is_said_to_be_from(block: Block) -> None:
    source = (ROOT / str(block.word)).read_text(encoding="utf-8")
    parts = re.split(r"^ *(?:# )?…\n", block.text, flags=re.MULTILINE)
    assert [part for part in parts if part.strip("\n") not in source] == []


@pytest.mark.parametrize("block", chosen(None, languages=("json",)), ids=str)
def test_shown_json_can_be_parsed_and_its_entries_for_clients_start_nova(block: Block) -> None:
    data = json.loads(block.text)
    for entry in data.get("mcpServers", {}).values():
        if "command" in entry:
            assert line_problems(" ".join([entry["command"], *entry.get("args", [])])) == []


@pytest.mark.parametrize("block", chosen("file", languages=("json",)), ids=str)
def test_a_shown_token_file_is_taken(block: Block) -> None:
    assert block.word == FILE_NAME
    assert len(TokenFile.model_validate_json(block.text).named()) == 2


@pytest.mark.parametrize("block", chosen(None, "file", languages=("toml",)), ids=str)
def test_shown_configuration_is_taken(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NOVA_")]:
        monkeypatch.delenv(name)
    name = block.word or "nova.toml"
    file = tmp_path / name
    file.write_text(block.text)
    file.chmod(0o600)
    assert tomllib.loads(block.text)
    match name:
        case "nova.toml":
            load_settings({"data_dir": tmp_path})
        case "secrets.toml":
            secrets = open_secrets(tmp_path)
            assert (secrets.problem, bool(secrets.names())) == (None, True)
        case "policies.toml":
            assert load_policies(tmp_path)
        case _:
            pytest.fail(f"nobody reads {name}")


def run(block: Block, folder: Path) -> None:
    """In a folder of its own, with a data folder of its own, and with this checkout's programs."""
    programs = folder / "bin"
    programs.mkdir()
    for name, code in (("nova", "main"), ("nova-mcp", "serve_main")):
        script = programs / name
        script.write_text(f"#!{sys.executable}\nfrom nova_mcp.cli import {code}\n{code}()\n")
        script.chmod(0o755)
    (programs / "python").symlink_to(sys.executable)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NOVA_")}
    environment |= {"NOVA_DATA_DIR": str(folder / "data"), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT / "examples")])
    shell = block.language in SHELL
    done = subprocess.run(
        ["sh", "-eu", "-c", block.text] if shell else [sys.executable, "-c", block.text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("block", [block for block in chosen("run") if block.word is None], ids=str)
def test_what_is_said_to_run_runs(block: Block, tmp_path: Path) -> None:
    run(block, tmp_path)


@pytest.mark.browser
@pytest.mark.parametrize("block", [block for block in chosen("run") if block.word == "browser"], ids=str)
def test_what_is_said_to_run_in_a_browser_runs(block: Block, tmp_path: Path) -> None:
    run(block, tmp_path)


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert line_problems("nova ledger verify --head x")
    assert line_problems("nova leger verify")
    assert line_problems("nova setup emacs")
    assert line_problems("NOVA_STROE=x nova serve")
    assert line_problems("make tests")
    assert line_problems("python -m bench speed")
    assert line_problems("uvx --from other nova doctor")
    assert line_problems("frobnicate --all")
    assert nova_problems(["nova", "serve", "--log-level", "loud"])
    assert line_problems("nova events --follow | cat && nova stop") == []


def test_the_tour_shows_every_room() -> None:
    rooms = {path.parent.name for path in (ROOT / "src" / "nova_mcp").glob("*/__init__.py")}
    shown = set(re.findall(r"^\| `(\w+)/` \|", (ROOT / "docs" / "tour.md").read_text(), re.MULTILINE))
    assert rooms == shown


def test_every_module_that_the_tour_names_exists() -> None:
    known = {path.relative_to(ROOT).as_posix() for tree in ("src", "tests") for path in (ROOT / tree).rglob("*.py")}
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "tour.md").read_text()))
    assert len(named) > 50
    assert [name for name in sorted(named) if not any(f"/{path}".endswith(f"/{name}") for path in known)] == []


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        links = {
            (path.parent / link.partition("#")[0]).resolve() for link in re.findall(r"\]\(([^):]+)\)", prose(path))
        }
        waiting += [inner for link in links for inner in (link.glob("*.md") if link.is_dir() else [link])]
        waiting = [one for one in waiting if one.suffix == ".md"]
    assert [named(path) for path in documents() if path not in reached] == []
