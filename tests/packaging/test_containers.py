"""Dockerfile and compose.yaml: linted, and every path, command, flag and setting in them exists."""

import fnmatch
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_kit import nova_problems, variable_problems
from ruamel.yaml import YAML
from wheel_kit import ROOT

import nova_mcp
from nova_mcp.browser.process.install import system_commands
from nova_mcp.cli.serving.serve import configuration, parser
from nova_mcp.server.http.request_guard import HEALTH_PATH
from nova_mcp.settings import HttpSettings

HADOLINT = Path(sys.executable).with_name("hadolint")
COMPOSE: dict[str, Any] = YAML(typ="safe").load(ROOT / "compose.yaml")
PINNED = re.compile(r"^[\w./-]+:\d+\.\d+(\.\d+)?(-[\w.-]+)?$")
SECRET = re.compile(r"PASS|TOKEN|SECRET|KEY", re.IGNORECASE)
ASKED_FOR = re.compile(r"^\$\{[A-Z_]+:\?[^}]+\}$")


@dataclass(frozen=True, slots=True)
class Instruction:
    word: str
    rest: str

    @property
    def listed(self) -> list[str]:
        parsed: list[str] = json.loads(self.rest)
        return parsed


def instructions() -> list[Instruction]:
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    split = (line.partition(" ") for line in joined.splitlines() if line.strip())
    return [Instruction(word, rest.strip()) for word, _, rest in split]


def all_of(word: str) -> list[Instruction]:
    return [one for one in instructions() if one.word == word]


@pytest.mark.skipif(not HADOLINT.is_file(), reason="hadolint has no wheel for this machine")
def test_the_dockerfile_satisfies_its_linter_down_to_style() -> None:
    done = subprocess.run(
        [str(HADOLINT), "--no-color", "--failure-threshold", "style", str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_compose_file_has_the_form_of_the_compose_specification() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def copied() -> list[str]:
    """What is copied from the checkout, not from another stage."""
    words = [shlex.split(one.rest) for one in all_of("COPY")]
    return [source for line in words if not line[0].startswith("--from=") for source in line[:-1]]


def test_everything_that_is_copied_is_there() -> None:
    assert copied()
    assert [source for source in copied() if not (ROOT / source).exists()] == []


def sent_to_the_builder(path: str) -> bool:
    """The rules of .dockerignore as far as ours go: the last one that fits decides."""
    sent = True
    for rule in (ROOT / ".dockerignore").read_text().splitlines():
        if not rule or rule.startswith("#"):
            continue
        pattern = rule.removeprefix("!").removeprefix("**/")
        parts = Path(path).parts
        prefixes = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        fits = any(fnmatch.fnmatch(prefix, pattern) for prefix in prefixes)
        if rule.startswith("**/"):
            fits = any(fnmatch.fnmatch(part, pattern) for part in parts)
        if fits:
            sent = rule.startswith("!")
    return sent


def test_the_builder_gets_what_is_copied_and_nothing_private() -> None:
    assert all(sent_to_the_builder(source) for source in copied())
    assert sent_to_the_builder("src/nova_mcp/app.py")
    for private in (
        ".git/config",
        ".env",
        ".venv/bin/python",
        "nova.toml",
        "secrets.toml",
        "mcp.json",
        "tests/conftest.py",
    ):
        assert not sent_to_the_builder(private), private
    assert not sent_to_the_builder("src/nova_mcp/__pycache__/app.cpython-311.pyc")


def test_images_are_pinned_to_a_version() -> None:
    stages = [one.rest.split(" ")[0] for one in all_of("FROM")]
    foreign = [service["image"] for service in COMPOSE["services"].values() if "build" not in service]
    assert [image for image in (*stages, *foreign) if not PINNED.match(image)] == []
    assert COMPOSE["services"]["nova"]["image"] == f"nova-mcp:{nova_mcp.__version__}"


def test_it_does_not_run_as_root_and_may_gain_nothing() -> None:
    (user,) = all_of("USER")
    assert user.rest.isdigit()
    assert int(user.rest) >= 1000
    assert f"--uid {user.rest} " in "".join(one.rest for one in all_of("RUN"))
    nova = COMPOSE["services"]["nova"]
    assert nova["cap_drop"] == ["ALL"]
    assert nova["read_only"] is True
    assert all("no-new-privileges:true" in service["security_opt"] for service in COMPOSE["services"].values())
    assert not any(service.get("privileged") for service in COMPOSE["services"].values())


def variables() -> dict[str, str]:
    found = dict(pair.split("=", 1) for one in all_of("ENV") for pair in shlex.split(one.rest))
    return found | {name: str(value) for name, value in COMPOSE["services"]["nova"]["environment"].items()}


def test_every_setting_exists_and_has_a_value_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {name: value for name, value in variables().items() if name.startswith("NOVA_")}
    assert [problem for name in given for problem in variable_problems(name)] == []
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = configuration({})
    assert str(settings.data_dir) in [place for one in all_of("VOLUME") for place in one.listed]
    assert settings.store_url == COMPOSE["services"]["nova"]["environment"]["NOVA_STORE"]


def test_the_commands_are_ones_that_nova_takes() -> None:
    (entry,) = all_of("ENTRYPOINT")
    (default,) = all_of("CMD")
    for words in (default.listed, COMPOSE["services"]["nova"]["command"]):
        assert entry.listed == ["nova"]
        assert nova_problems([*entry.listed, *words]) == []
        assert words[0] == "serve"
        assert parser("nova serve").parse_args(words[1:]).http == f"0.0.0.0:{HttpSettings().port}"


def test_health_is_asked_for_where_the_server_answers() -> None:
    (check,) = all_of("HEALTHCHECK")
    assert f"http://127.0.0.1:{HttpSettings().port}{HEALTH_PATH}" in check.rest
    (exposed,) = all_of("EXPOSE")
    assert exposed.rest == str(HttpSettings().port)
    (command,) = re.findall(r"CMD (\[.*\])", check.rest)
    compile(json.loads(command)[2], "health check", "exec")
    assert "healthcheck" in COMPOSE["services"]["db"]
    assert COMPOSE["services"]["nova"]["depends_on"]["db"]["condition"] == "service_healthy"


def test_only_the_hosts_own_loopback_reaches_the_port_and_only_nova_the_database() -> None:
    assert COMPOSE["services"]["nova"]["ports"] == [f"127.0.0.1:{HttpSettings().port}:{HttpSettings().port}"]
    assert "ports" not in COMPOSE["services"]["db"]
    assert COMPOSE["services"]["db"]["networks"] == ["store"]
    assert COMPOSE["networks"]["store"]["internal"] is True


def test_no_secret_is_written_down() -> None:
    every = [
        (name, str(value)) for service in COMPOSE["services"].values() for name, value in service["environment"].items()
    ]
    secret = [(name, value) for name, value in every if SECRET.search(name)]
    assert {name for name, _ in secret} == {"PGPASSWORD", "POSTGRES_PASSWORD"}
    assert [name for name, value in secret if not ASKED_FOR.match(value)] == []
    assert not any(re.search(r"//[^/@:]+:[^@]+@", value) for _, value in every)
    assert not any(SECRET.search(pair) for one in all_of("ENV") for pair in shlex.split(one.rest))
    assert not all_of("ARG")
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_volumes_and_networks_are_declared() -> None:
    for service in COMPOSE["services"].values():
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(COMPOSE["volumes"])
        assert set(service["networks"]) <= set(COMPOSE["networks"])


def test_the_image_gets_the_same_browser_as_set_up_installs_on_debian() -> None:
    *_, install = system_commands({"apt-get": "/usr/bin/apt-get"}.get, 0)
    packages = [word for word in install[2:] if not word.startswith("-")]
    (run,) = [one.rest for one in all_of("RUN") if "apt-get install" in one.rest]
    assert [package for package in packages if package not in run.split()] == []
