"""Modules that call themselves pure, or are named after rules or a model, take values and return values."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "nova_mcp"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
(PURITY,) = [one for one in CONTRACTS if one["name"] == "Models and rules are pure"]
# What has effects, as the contract for modules called `model` and `rules` lists it.
EFFECTS = tuple(PURITY["forbidden_modules"])


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


def has_effects(name: str) -> bool:
    # Errors are values, also those of a database.
    return any(name == one or name.startswith(f"{one}.") for one in EFFECTS) and not name.endswith(".errors")


def test_every_package_with_a_store_decides_in_pure_modules() -> None:
    stores = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("store.py")}
    assert stores
    assert stores <= {path.relative_to(SOURCE).parts[0] for path in PURE}


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_pure_module_imports_nothing_with_effects(path: Path) -> None:
    assert [name for name in imported(parsed(path)) if has_effects(name)] == []
