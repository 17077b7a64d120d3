"""The tree of the source: narrow folders, and packages whose doors hold."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src"
PACKAGE = "nova_mcp"
WIDEST = 20


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {module_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / PACKAGE).rglob("*.py")}


def inside(package: str) -> set[str]:
    """The modules and packages directly in a package."""
    return {name.removeprefix(f"{package}.") for name in TREES if name.rpartition(".")[0] == package}


def door_of(package: str) -> list[str] | None:
    """What a package says that others may use; None where it says nothing."""
    for node in TREES[package].body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            return ast.literal_eval(node.value)
    return None


DOORS = {
    name: door_of(name)
    for name in TREES
    if inside(name) and name not in (PACKAGE, "nova_mcp.storage.migrations.versions")
}


def imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # A name taken from a package may be a module in it.
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def past_doors(importer: str, name: str) -> Iterator[str]:
    """The doors that an import goes past."""
    parts = name.split(".")
    for size in range(2, len(parts)):
        package, entry = ".".join(parts[:size]), parts[size]
        outside = importer != package and not importer.startswith(f"{package}.")
        if outside and entry in inside(package) and entry not in (DOORS.get(package) or ()):
            yield package


@pytest.mark.parametrize("package", DOORS)
def test_a_package_names_what_others_may_use(package: str) -> None:
    assert ast.get_docstring(TREES[package])
    door = DOORS[package]
    assert door is not None, "list in __all__ the modules that other packages may import"
    own = {node.name for node in TREES[package].body if isinstance(node, ast.FunctionDef | ast.ClassDef)} | {
        node.id for node in ast.walk(TREES[package]) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    own |= {alias.name for node in TREES[package].body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(door) <= inside(package) | own


def test_no_module_goes_past_the_door_of_another_package() -> None:
    found = [
        f"{importer}:{line} imports {name}, which {package} does not list in __all__"
        for importer, tree in TREES.items()
        for name, line in imported(tree)
        if name.startswith(f"{PACKAGE}.")
        for package in past_doors(importer, name)
    ]
    assert found == []


def test_no_folder_is_too_wide_to_be_taken_in() -> None:
    folders = [path for path in (ROOT / PACKAGE).rglob("*") if path.is_dir() and path.name != "__pycache__"]
    widths = {
        str(folder.relative_to(ROOT)): sum(entry.name != "__pycache__" for entry in folder.iterdir())
        for folder in [ROOT / PACKAGE, *folders]
    }
    assert {folder: width for folder, width in widths.items() if width > WIDEST} == {}


def test_json_is_defined_in_the_core_only() -> None:
    def names(tree: ast.Module) -> set[str]:
        return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}

    values = {name for name, tree in TREES.items() if {"Json", "JsonObject", "Owner"} & names(tree)}
    assert values == {"nova_mcp.core.values"}
