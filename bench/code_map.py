"""Writes docs/map.md: the layers with their packages, and one call as it really ran.

The layers come from the contract that holds them and from the packages' own first lines; `--check` compares them with
the page and is quick. The call comes from a trace, which needs a browser, and is drawn anew by `make map` only.
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio

from bench.walks import SOURCE, Function, Trace, trace_walks

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "map.md"
CONTRACT: Final = "Imports point down"
CALL: Final = "learn_promote"
BEGIN: Final = "## One call"
SHOWN: Final = 4
LINK: Final = "../src/nova_mcp"

HEAD: Final = """# A map of the code

Drawn by `make map` from the code; do not edit. [The tour](tour.md) explains what is drawn here.

## Layers

A package imports only what stands below it; what shares a row does not import each other. `make check` holds this.
"""
CALL_HEAD: Final = f"""{BEGIN}

`nova.{CALL}`, traced from the server to the answer: each file in the order in which it was reached first in its part,
and the functions that ran there. The parts are the same for every call; only the handler and what it asks for differ.
`scripts/walk --list {CALL}` prints every function with its line.
"""
PARTS: Final = {
    "server": "The protocol: a request becomes plain values.",
    "before": "What precedes the handler: arguments, target, gates, limits, locks.",
    "handler": "The tool itself.",
    "after": "What follows the handler: repeats, learning, what is said beside the answer.",
    "commit": "The record and everything that is written with it, in one transaction.",
    "answer": "The answer, rendered once the record is committed.",
}
RECORDER: Final = "evidence/recorder.py"


# -- layers


def layers() -> list[list[str]]:
    """Packages and modules by layer, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [one for one in settings["tool"]["importlinter"]["contracts"] if one["name"] == CONTRACT]
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def about(path: Path) -> str:
    """The first line of a package's or module's own description."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("|", "\\|")


def packages(folder: Path) -> list[Path]:
    """The packages inside a package, by name."""
    return sorted(path.parent for path in folder.glob("*/__init__.py"))


def layers_text() -> str:
    lines = [HEAD, "| layer | what it holds |", "|---|---|"]
    for layer in layers():
        names = [f"[`{_name(one)}`]({LINK}/{_name(one)})" for one in layer]
        lines.append(f"| {'<br>'.join(names)} | {'<br>'.join(_about(one) for one in layer)} |")
    lines += ["", "## Packages inside packages", ""]
    for layer in layers():
        for name in layer:
            lines += list(_inside(SOURCE / name))
    return "\n".join([*lines, ""])


def _name(layer: str) -> str:
    return f"{layer}/" if (SOURCE / layer).is_dir() else f"{layer}.py"


def _about(layer: str) -> str:
    return about(SOURCE / layer / "__init__.py" if (SOURCE / layer).is_dir() else SOURCE / f"{layer}.py")


def _inside(folder: Path) -> Iterator[str]:
    for package in packages(folder):
        name = package.relative_to(SOURCE).as_posix()
        yield f"- [`{name}/`]({LINK}/{name}): {about(package / '__init__.py')}"
        yield from _inside(package)


# -- one call


def parts_of(trace: Trace, handler: str) -> dict[str, list[Function]]:
    """The functions of a call by the part of its life in which each began.

    What the handler or the recorder leads to is theirs, whenever it runs; everything else goes by the order of parts.
    """
    found: dict[str, list[Function]] = {part: [] for part in PARTS}
    part = "server"
    for function in trace.callers:
        ancestors = list(_ancestors(trace.callers, function))
        if part == "server" and function.file.startswith("calls/"):
            part = "before"
        handled = any(one.name == handler for one in ancestors)
        if handled and part == "before":
            part = "after"
        if part in ("after", "answer") and any(one.file == RECORDER for one in ancestors):
            part = "answer"
            found["commit"].append(function)
        else:
            found["handler" if handled else part].append(function)
    return found


def _ancestors(callers: Mapping[Function, Function | None], function: Function) -> Iterator[Function]:
    """The function itself and those that led to it."""
    seen: Function | None = function
    while seen is not None:
        yield seen
        seen = callers.get(seen)


def walk_text(trace: Trace, handler: str = CALL) -> str:
    lines = [CALL_HEAD]
    for part, functions in parts_of(trace, handler).items():
        files: dict[str, list[str]] = {}
        for function in functions:
            files.setdefault(function.file, []).append(function.name.replace(".<locals>", ""))
        lines += [f"### {part.capitalize()}", "", PARTS[part], "", "| file | what runs |", "|---|---|"]
        lines += [f"| [`{file}`]({LINK}/{file}) | {_shown(names)} |" for file, names in files.items()]
        lines.append("")
    return "\n".join(lines)


def _shown(names: Sequence[str]) -> str:
    named = [name for name in dict.fromkeys(names) if "<lambda>" not in name]
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return ", ".join(f"`{name}`" for name in named[:SHOWN]) + more if named else "a lambda"


# -- the page


def problems(page: str) -> list[str]:
    """Why the page is out of date: other layers or packages, or a call through files that are gone."""
    drawn, _, call = page.partition(BEGIN)
    gone = sorted(name for name in _linked(call) if not (SOURCE / name).exists())
    stale = [] if drawn == layers_text() + "\n" else ["its layers or packages are not those of the code"]
    return stale + [f"the call runs through {name}, which is gone" for name in gone]


def _linked(text: str) -> set[str]:
    return {part.partition(")")[0].lstrip("/") for part in text.split(f"]({LINK}")[1:]}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/map", description="Write docs/map.md.")
    parser.add_argument("--check", action="store_true", help="exit code 1 when layers or packages have changed")
    if parser.parse_args(arguments).check:
        found = problems(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
        for problem in found:
            print(f"docs/map.md is out of date: {problem}; run `make map`", file=sys.stderr)
        return 1 if found else 0
    traces = anyio.run(trace_walks, (CALL,))
    PAGE.write_text(f"{layers_text()}\n{walk_text(traces[CALL])}", encoding="utf-8", newline="\n")
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
