"""Modules that call themselves pure, or are named after rules or a model, take values and return values."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "nova_mcp"
EFFECTS = {"sqlalchemy", "playwright", "mcp", "mcp_types", "anyio", "asyncio", "socket", "subprocess", "time", "random"}
PACKAGES = ("nova_mcp.storage", "nova_mcp.server")
# Error values, without a database behind them.
VALUES = {"nova_mcp.storage.errors"}


def claims_to_be_pure(path: Path, tree: ast.Module) -> bool:
    summary = (ast.get_docstring(tree) or "").rstrip().rstrip(".").lower()
    return path.stem.endswith(("rules", "model")) or summary.endswith("pure")


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


PURE = sorted(path for path in SOURCE.rglob("*.py") if claims_to_be_pure(path, parsed(path)))


def test_there_are_pure_modules_in_every_package_that_decides() -> None:
    packages = {path.relative_to(SOURCE).parts[0] for path in PURE}
    assert packages >= {"browser", "calls", "evidence", "memory", "verification"}


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_pure_module_imports_nothing_with_effects(path: Path) -> None:
    imports = imported(parsed(path))
    impure = {name for name in imports if name.split(".")[0] in EFFECTS} | {
        name for name in imports - VALUES if name.startswith(PACKAGES)
    }
    assert impure == set()
