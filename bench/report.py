"""`python -m bench report`: every benchmark in its short form; results kept, docs/report.md and the README written."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.environment import ROOT, this_environment
from bench.plan import BY_NAME, NAMES, PLAN
from bench.report_page import filled, page, readme_tables, tally
from bench.report_run import Order, measured
from bench.report_verdicts import word_of
from bench.results import FOLDER, Form, Section, store, stored

PAGE = ROOT / "docs" / "report.md"
README = ROOT / "README.md"
# A long form takes hours; its limit only ends what hangs.
LONG_LIMIT_S = 6 * 3600.0


def _asked(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="python -m bench report", description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", metavar="NAME[,NAME…]", help="measure these alone; the others keep what they have")
    parser.add_argument("--long", action="store_true", help="in the long form, kept beside the short one")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="end each benchmark after so long")
    parser.add_argument("--render", action="store_true", help="measure nothing; write both pages from what is stored")
    return parser.parse_known_args(words)


def _names(only: str | None) -> tuple[str, ...]:
    names = tuple(only.split(",")) if only else NAMES
    if unknown := [name for name in names if name not in BY_NAME]:
        raise SystemExit(f"unknown benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    return names


def _order(name: str, form: Form, limit_s: float | None, more: Sequence[str]) -> Order:
    planned = BY_NAME[name]
    usual = planned.limit_s if form == "short" else LONG_LIMIT_S
    arguments = planned.arguments if form == "short" and not more else tuple(more)
    return Order(name, form, arguments, limit_s or usual)


def _line(section: Section) -> str:
    words = [word_of(found) for found in section.findings]
    counted = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    rest = [counted or "no findings", *section.left_out, *([section.problem] if section.problem else [])]
    return f"{section.name}: {section.status} in {section.seconds:.0f} s · {' · '.join(rest)}"


def write_pages(page_path: Path = PAGE, readme: Path = README, folder: Path = FOLDER) -> str:
    """Both pages anew from what is stored; the tally of aims is handed back."""
    sections = in_order(stored(folder))
    page_path.write_text(page(sections), encoding="utf-8")
    text = readme.read_text(encoding="utf-8")
    readme.write_text(filled(text, readme_tables(sections)), encoding="utf-8")
    return tally(sections)


def in_order(sections: Sequence[Section]) -> list[Section]:
    """As planned, the short form first; what is no longer planned is left out."""
    place = {one.name: number for number, one in enumerate(PLAN)}
    known = [section for section in sections if section.name in place]
    return sorted(known, key=lambda section: (place[section.name], section.form != "short"))


def main(words: Sequence[str]) -> int:
    """Whether every benchmark came to its end; missed aims are results and stand in the report."""
    asked, more = _asked(words)
    broken = 0
    if not asked.render:
        form: Form = "long" if asked.long else "short"
        begun, environment = time.monotonic(), this_environment()
        for name in _names(asked.only):
            print(f"{name} …", end=" ", flush=True)
            section = measured(_order(name, form, asked.limit, more), environment)
            store(section)
            write_pages()
            broken += section.status != "done"
            print(f"\r{_line(section)}", flush=True)
        print(f"{time.monotonic() - begun:.0f} s in all")
    print(write_pages())
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
