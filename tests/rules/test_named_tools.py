"""Whatever Nova's texts tell an agent to call or to branch on is really there."""

import re
from pathlib import Path

import nova_mcp
from nova_mcp.errors import FAMILIES
from nova_mcp.tools.catalogue import load_catalogue

PACKAGE = Path(nova_mcp.__file__).parent
# Packages whose texts reach an agent.
SPEAKING = ("browser", "pipeline", "secrets", "server", "tools", "verification", "errors.py", "policy.py")
# Keys, files and marks that only look like names of tools.
NO_TOOLS = frozenset({"admit", "db", "toml", "principal", "x", "settling", "ask", "cover"})
# Put together from parts where they are raised.
COMPOSED = frozenset(
    {"action.disabled", "navigation.cannot_go_back", "navigation.cannot_go_forward"}
    | {
        f"guarded_commit.{what}"
        for what in ("precondition_failed", "precondition_error", "duplicate_suspected", "eval_error")
    }
    | {f"guarded_commit.{what}" for what in ("dispatch_prepare_rejected", "kill_switch_global", "kill_switch_domain")}
)
# Reasons of the contract that belong to tools which do not exist yet.
NOT_YET: frozenset[str] = frozenset()
_NAMED = re.compile(r"\bnova\.([a-z][a-z_]*)")
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def _sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


def test_every_tool_that_a_text_names_exists() -> None:
    known = {spec.name for spec in load_catalogue()}
    wrong = {
        (str(path.relative_to(PACKAGE)), name)
        for path, source in _sources().items()
        if path.relative_to(PACKAGE).parts[0] in SPEAKING
        for literal in _TEXT.findall(source)
        for name in _NAMED.findall(literal)
        if name not in known | NO_TOOLS
    }
    assert wrong == set()


def test_every_reason_can_be_produced_or_waits_for_its_tool() -> None:
    sources = [text for path, text in _sources().items() if path.name != "errors.py"]
    every = {reason for family in FAMILIES for reason in family.reasons}
    silent = {reason for reason in every if not any(f'"{reason}"' in text for text in sources)}
    assert silent - COMPOSED == NOT_YET
