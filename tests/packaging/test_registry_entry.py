"""`server.json`, the entry for MCP registries: well formed, and true of this version."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from wheel_kit import ROOT

import nova_mcp
from nova_mcp.cli.serving.serve import parser
from nova_mcp.settings import environment_paths

ENTRY: dict[str, Any] = json.loads((ROOT / "server.json").read_text())
SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "server.schema.json").read_text())
(PACKAGE,) = ENTRY["packages"]


def test_the_entry_has_the_form_of_the_registry() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(ENTRY, SCHEMA)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), "nova"),
        (("version",), "latest"),
        (("description",), "x" * 101),
        (("packages", 0, "transport"), {}),
        (("packages", 0, "runtime_hint"), "uvx"),
        (("packages", 0, "environmentVariables", 0, "is_secret"), True),
    ],
)
def test_what_a_registry_would_refuse_is_refused_here(path: tuple[str | int, ...], value: object) -> None:
    wrong = copy.deepcopy(ENTRY)
    place: Any = wrong
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_it_speaks_of_this_version_of_this_package() -> None:
    assert ENTRY["version"] == PACKAGE["version"] == nova_mcp.__version__
    assert PACKAGE["identifier"] == "nova-mcp"


def test_the_readme_and_the_image_carry_its_name_because_that_proves_who_owns_it() -> None:
    assert re.search(rf"<!-- mcp-name: {re.escape(ENTRY['name'])} -->", (ROOT / "README.md").read_text())
    assert f'io.modelcontextprotocol.server.name="{ENTRY["name"]}"' in (ROOT / "Dockerfile").read_text()


def test_every_flag_and_variable_in_it_is_known() -> None:
    flags = {name for action in parser("nova-mcp")._actions for name in action.option_strings}
    assert {argument["name"] for argument in PACKAGE["packageArguments"]} <= flags
    assert {variable["name"] for variable in PACKAGE["environmentVariables"]} <= set(environment_paths())
