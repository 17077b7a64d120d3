"""The page on dependencies names what is locked, and claims of no locked version that it is older than a fix."""

import re
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKED = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
ROW = re.compile(r"^\| ([A-Za-z0-9_.-]+) \| ([^ |]+) \|[^|]*\| ([^|]+) \|$", re.MULTILINE)
FIXED = re.compile(r"\(([0-9][0-9.]*)\)")
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")


def locked() -> dict[str, str]:
    return dict(LOCKED.findall((ROOT / "requirements" / "runtime.lock").read_text(encoding="utf-8")))


def test_every_locked_runtime_dependency_is_named_at_its_version():
    named = {name: version for name, version, _ in ROW.findall(PAGE) if name != "package"}
    assert len(named) > 20
    assert named == locked()


def test_every_advisory_named_is_fixed_in_what_is_locked():
    fixes = [(version, fix) for _, version, told in ROW.findall(PAGE) for fix in FIXED.findall(told)]
    assert len(fixes) > 15
    assert not [(version, fix) for version, fix in fixes if Version(version) < Version(fix)]


def test_the_page_says_when_it_was_written_and_where_it_ends():
    assert re.search(r"Written on\s+20\d\d-\d\d-\d\d", PAGE)
    assert "not from a query" in PAGE
