"""Files for pages: which paths may be read, which names an input takes."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.files.upload_rules import Inside, Outside, is_accepted, judge_path, mime_type, shown_name

ROOTS = (Path("/srv/uploads"), Path("/srv/downloads"))
PART = st.text(st.characters(exclude_characters="/\x00", exclude_categories=("Cs",)), min_size=1, max_size=8).filter(
    lambda part: part not in (".", "..")
)


@pytest.mark.parametrize("path", ["/srv/uploads/a", "/srv/uploads/b/c.txt", "/srv/downloads/x y"])
def test_a_path_inside_a_root_is_taken(path: str) -> None:
    assert judge_path(Path(path), ROOTS) == Inside(Path(path))


@pytest.mark.parametrize(
    "path", ["/srv/uploads", "/srv/uploads2/a", "/srv/up", "/", "/etc/passwd", "a.txt", "/srv/uploads/../x", "/srv"]
)
def test_everything_else_is_outside(path: str) -> None:
    assert judge_path(Path(path), ROOTS) == Outside()


def test_without_roots_nothing_may_be_read() -> None:
    assert judge_path(Path("/srv/uploads/a"), ()) == Outside()
    assert judge_path(Path("/srv/uploads/a"), (Path("srv"), Path())) == Outside()


@given(st.lists(PART, min_size=1, max_size=5))
def test_inside_means_below_a_root_and_nothing_else(parts: list[str]) -> None:
    path = Path("/", *parts)
    expected = any(str(path).startswith(f"{root}/") for root in ROOTS)
    assert isinstance(judge_path(path, ROOTS), Inside) is expected
    assert isinstance(judge_path(Path(ROOTS[0], *parts), ROOTS), Inside)


@pytest.mark.parametrize(
    ("accept", "name", "taken"),
    [
        ("", "a.exe", True),
        (" , ", "a.exe", True),
        (".pdf", "a.PDF", True),
        (".PDF", "a.pdf", True),
        (".pdf", "pdf", False),
        (".tar.gz", "x.tar.gz", True),
        ("image/*", "a.png", True),
        ("image/*", "a.webp", True),
        ("image/*", "a.txt", False),
        ("IMAGE/PNG", "a.png", True),
        ("image/png; q=1", "a.png", True),
        ("image/jpeg, .doc", "a.jpg", True),
        ("image/jpeg,.doc", "a.docx", False),
        ("*/*", "a", True),
        ("/*", "a.png", False),
        (".", "a.png", False),
        ("image", "a.png", False),
        ("text/plain", "noending", False),
        ("application/json", "a.json", True),
    ],
)
def test_an_accept_list_takes_endings_types_and_kinds(accept: str, name: str, taken: bool) -> None:
    assert is_accepted(accept, name) is taken


@given(st.text(max_size=30), PART)
def test_any_accept_list_can_be_read(accept: str, name: str) -> None:
    assert is_accepted(accept, name) in (True, False)
    assert is_accepted(f"{accept},*/*", name)


@given(PART)
def test_a_name_is_taken_by_its_own_ending_and_type(stem: str) -> None:
    for ending in (".png", ".pdf", ".csv"):
        name = f"{stem}{ending}"
        assert is_accepted(ending, name)
        assert is_accepted(mime_type(name), name)


@given(st.lists(PART, min_size=1, max_size=4))
def test_a_name_is_told_without_its_folder(parts: list[str]) -> None:
    told = shown_name(str(PurePosixPath("/", *parts)))
    assert "/" not in told
    assert len(told) <= 120
    assert shown_name("C:\\secret\\plan.txt") == "plan.txt"
