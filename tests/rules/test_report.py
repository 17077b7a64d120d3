"""The report of measurements: a pure function of what is stored; nothing is left out, nothing sounds better."""

import importlib.util
import re

import pytest
from bench.aims import AIMS, GROUPS
from bench.findings import at_least, at_most, bad_share, flat
from bench.markdown import plain, table
from bench.plan import NAMES, PARTS, PLAN
from bench.report import PAGE, README, in_order, write_pages
from bench.report_page import MOST_ALIKE, filled, marked, page, readme_table, readme_tables, section_text
from bench.report_run import read_lines
from bench.report_verdicts import verdicts, word_of
from bench.results import FOLDER, Environment, Finding, LeftOut, Line, Remark, Section, Status, Table, store, stored
from bench.tables import RECORD_VARIABLE, left_out, show, tell
from hypothesis import given
from hypothesis import strategies as st

HERE = Environment(cores=2, memory_gb=8.3, kernel="Linux 6 x86_64", commit="abc", versions=(("Nova", "1"),))


def a_section(name: str, *lines: Line, form: str = "short", status: Status = "done", load: float = 0.1) -> Section:
    return Section(
        name=name,
        form="long" if form == "long" else "short",
        arguments=(),
        measured_at="2026-11-16 18:40",
        seconds=12.3,
        load=load,
        status=status,
        problem="" if status == "done" else "cut off after 60 s",
        environment=HERE,
        lines=lines,
    )


def a_finding(aim: str, *, met: bool | None = True, what: str = "something", smaller: str = "") -> Finding:
    return Finding(aim=aim, what=what, measured="1 ms", bound="≤ 2 ms", n=7, met=met, smaller=smaller)


def word(key: str, *sections: Section) -> str:
    return next(one.word for one in verdicts(sections) if one.aim.key == key)


def test_an_aim_nobody_measured_is_called_not_measured() -> None:
    assert word("S1") == "not measured"
    assert word("S1", a_section("pipeline", a_finding("S4"))) == "not measured"


def test_one_miss_is_a_miss_however_many_others_are_met() -> None:
    lines = (a_finding("S6"), a_finding("S6", met=False, what="other"), a_finding("S6"))
    assert word("S6", a_section("pipeline", *lines)) == "missed"


def test_an_aim_is_met_in_part_while_a_benchmark_that_belongs_to_it_has_no_result() -> None:
    measured = [a_section(name, a_finding("T1")) for name in ("truth", "miniwob")]
    assert word("T1", *measured) == "met in part"
    assert word("T1", *measured, a_section("django_admin", a_finding("T1"))) == "met"
    assert word("T1", *measured, a_section("django_admin", LeftOut(reason="no registry"))) == "met in part"


def test_what_a_run_told_before_it_was_cut_off_does_not_make_its_aim_whole() -> None:
    assert word("S5", a_section("verdicts", a_finding("S5"), status="cut off")) == "met in part"
    assert word("S5", a_section("verdicts", a_finding("S5", met=False), status="cut off")) == "missed"


def test_a_small_sample_is_said_until_another_run_of_the_same_measured_enough() -> None:
    short = a_section("duplicates", a_finding("T3", smaller="10,000 trials"))
    assert word("T3", short) == "met on a smaller sample"
    assert word("T3", short, a_section("duplicates", a_finding("T3"), form="long")) == "met"
    assert (
        word("T3", short, a_section("duplicates", a_finding("T3", what="x"), form="long")) == "met on a smaller sample"
    )


def test_a_miss_of_the_short_form_is_not_hidden_by_an_older_long_one() -> None:
    short = a_section("duplicates", a_finding("T3", met=False))
    assert word("T3", short, a_section("duplicates", a_finding("T3"), form="long")) == "missed"


def test_a_figure_without_a_bound_is_told_and_one_with_nothing_to_count_is_not_measured() -> None:
    told = Finding(aim="K1", what="x", measured="0.9", bound="", n=5, met=None)
    assert word("K1", a_section("tasks", told)) == "told"
    assert word_of(told) == "told"
    assert word_of(bad_share("T1", "x", 0, 0, 0.005)) == "not measured"
    assert word("T1", a_section("truth", bad_share("T1", "x", 0, 0, 0.005))) == "not measured"


def test_shares_are_judged_by_what_was_seen_and_their_upper_bound_says_if_that_is_enough() -> None:
    assert word_of(bad_share("T1", "x", 0, 36, 0.005)) == "met on a smaller sample"
    assert word_of(bad_share("T1", "x", 0, 1000, 0.005)) == "met"
    assert word_of(bad_share("T1", "x", 1, 36, 0.005)) == "missed"
    assert word_of(bad_share("T6", "x", 0, 3, 0)) == "met"
    assert word_of(bad_share("T6", "x", 1, 100_000, 0)) == "missed"
    assert bad_share("T1", "x", 0, 1000, 0.005).measured == "0 of 1,000 (upper bound 0.30 %)"


def test_bounds_are_kept_at_the_bound_and_missed_beyond_it() -> None:
    assert [at_most("S1", "x", value, 3, 9).met for value in (2.9, 3, 3.1)] == [True, True, False]
    assert [at_least("S6", "x", value, 1000, 9).met for value in (999, 1000)] == [False, True]
    assert flat("S7", "x", (1.0, 2.0), (10, 20), 20, 5).met is True
    assert flat("S7", "x", (1.0, 2.1), (10, 20), 20, 5).met is False
    assert flat("S7", "x", (1.0, 1.0), (10, 20), 21, 5).smaller == "21"


def test_every_aim_names_benchmarks_that_are_there_and_every_benchmark_belongs_to_an_aim() -> None:
    owed = {name for aim in AIMS for name in aim.sections}
    assert owed == set(NAMES)
    assert {aim.group for aim in AIMS} == set(GROUPS)
    assert [name for name in (*NAMES, *PARTS) if importlib.util.find_spec(f"bench.{name}") is None] == []
    keys = [aim.key for aim in AIMS]
    assert len(keys) == len(set(keys))
    assert {*(f"T{n}" for n in range(1, 10)), *(f"S{n}" for n in range(1, 10))} <= set(keys)


def _aims_told_in(name: str) -> set[str]:
    source = (FOLDER.parent / f"{name}.py").read_text(encoding="utf-8")
    return set(re.findall(r'(?:\b(?:bad_share|at_most|at_least|flat)\(\s*|\baim=)"(\w+)"', source))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_tells_figures_of_just_the_aims_it_is_listed_with(name: str) -> None:
    parts = [name, *(part for part in PARTS if part.startswith(f"{name}_"))]
    told = set().union(*(_aims_told_in(part) for part in parts))
    assert told == {aim.key for aim in AIMS if name in aim.sections}


def test_the_report_has_a_place_for_every_benchmark_measured_or_not() -> None:
    text = page([a_section("truth", a_finding("T1"))])
    assert re.findall(r"(?m)^### (\w+)$", text) == list(NAMES)
    assert text.count("**Not measured yet.**") == len(PLAN) - 1


def test_a_run_that_broke_off_says_so_beside_what_it_had_told() -> None:
    kept = Table(title="Half", columns=("a", "b"), rows=(("x", "1"),))
    text = section_text(a_section("kill", kept, status="cut off"))
    assert "did not come to its end: cut off after 60 s" in text
    assert "| x | 1 |" in text


def test_parts_that_could_not_be_measured_and_a_busy_machine_are_said() -> None:
    text = section_text(a_section("browser", LeftOut(reason="no npm here"), Remark(text="peer 1.0"), load=3.0))
    assert "**Not measured: no npm here.**" in text
    assert "the machine was busy (load 3 on 2 cores)" in text
    assert "- peer 1.0" in text
    assert "busy" not in section_text(a_section("browser"))


def test_every_table_stands_beside_the_verdicts_of_its_section() -> None:
    shown = Table(title="T", columns=("a",), rows=(("x",),))
    text = section_text(a_section("pipeline", shown, a_finding("S1", met=False, what="a call")))
    assert text.index("S1 **missed** · a call: 1 ms (n = 7, aim ≤ 2 ms)") < text.index("| x |")


def test_different_machines_are_told_apart() -> None:
    other = a_section("kill").model_copy(update={"environment": HERE.model_copy(update={"cores": 64})})
    text = page([a_section("truth"), other])
    assert "2 cores, 8.3 GB" in text
    assert "64 cores, 8.3 GB" in text
    assert ": kill" in text


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_whatever_a_cell_says_it_stays_in_its_cell(cells: list[str]) -> None:
    line = table([plain(cell) for cell in cells], []).split("\n")[0]
    assert len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) == len(cells) + 1
    assert "<" not in line


@given(st.text(max_size=60))
def test_filling_marked_places_leaves_the_rest_alone_and_changes_nothing_the_second_time(around: str) -> None:
    tables = {"truth": "| a |", "speed": "| b |"}
    text = (
        f"{around}\n<!-- report:truth -->\nold\n<!-- /report -->\n{around}\n<!-- report:speed -->\n<!-- /report -->\n"
    )
    once = filled(text, tables)
    assert once == text.replace("old\n", "| a |\n").replace("<!-- report:speed -->\n", "<!-- report:speed -->\n| b |\n")
    assert filled(once, tables) == once


def test_a_marked_place_with_an_unknown_name_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="no table is called spede"):
        filled("<!-- report:spede -->\n<!-- /report -->", readme_tables([]))


def test_tables_of_the_readme_name_what_is_missing() -> None:
    text = readme_table("scale", [a_section("journal", a_finding("S7", met=False))])
    assert "**missed**" in text
    assert "(knowledge, tasks, facts)" in text
    assert "2026-11-16" in text
    assert "**not measured**" in readme_table("scale", [])


def test_many_good_figures_of_an_aim_are_one_row_of_the_readme_and_a_miss_is_always_named() -> None:
    good = [a_finding("S7", what=f"figure {number}") for number in range(MOST_ALIKE + 1)]
    text = readme_table("scale", [a_section("journal", *good, a_finding("S7", met=False, what="the slow one"))])
    assert f"{MOST_ALIKE + 1} figures" in text
    assert "figure 0" not in text
    assert "the slow one" in text
    assert "figure 1" in readme_table("scale", [a_section("journal", *good[:MOST_ALIKE])])


def test_the_readme_leaves_out_a_smaller_sample_where_a_larger_one_told_the_same() -> None:
    small = a_section("dashboard", a_finding("D1", what="start page", smaller="a million"))
    large = a_section("dashboard", a_finding("D1", what="start page")).model_copy(update={"form": "long"})
    assert "a million" in readme_table("scale", [small])
    assert "a million" not in readme_table("scale", [small, large])


def test_the_report_and_the_readme_say_what_the_stored_results_say() -> None:
    sections = in_order(stored(FOLDER))
    assert PAGE.read_text(encoding="utf-8") == page(sections), "run `python -m bench report --render`"
    text = README.read_text(encoding="utf-8")
    assert text == filled(text, readme_tables(sections)), "run `python -m bench report --render`"


def test_the_readme_shows_every_group_of_figures_once() -> None:
    assert sorted(marked(README.read_text(encoding="utf-8"))) == sorted(GROUPS)


def test_stored_results_are_read_back_as_they_were(tmp_path) -> None:
    short = a_section("truth", a_finding("T1"), Table(title="t", columns=("a",), rows=(("1",),)), Remark(text="r"))
    long = short.model_copy(update={"form": "long"})
    store(short, tmp_path)
    store(long, tmp_path)
    assert in_order(stored(tmp_path)) == [short, long]


def test_what_is_shown_on_the_terminal_is_what_the_report_gets(tmp_path, monkeypatch, capsys) -> None:
    record = tmp_path / "record"
    monkeypatch.setenv(RECORD_VARIABLE, str(record))
    finding = a_finding("S1", met=False, what="a call")
    show("Calls", ["call", "ms"], [["nova", 1.234], ["bare", 1]])
    tell(finding)
    left_out("no registry")
    assert read_lines(record.read_text(encoding="utf-8")) == (
        Table(title="Calls", columns=("call", "ms"), rows=(("nova", "1.23"), ("bare", "1"))),
        finding,
        LeftOut(reason="no registry"),
    )
    said = capsys.readouterr()
    assert "S1 MISSED · a call: 1 ms, n = 7 (aim ≤ 2 ms)" in said.out
    assert "not measured: no registry" in said.err


def test_one_section_measured_anew_keeps_the_others(tmp_path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(
        "# N\n<!-- report:truth -->\n<!-- /report -->\n<!-- report:tasks -->\n<!-- /report -->\n", "utf-8"
    )
    store(a_section("truth", a_finding("T1", what="first run")), tmp_path / "results")
    store(a_section("tasks", a_finding("T7", what="plans")), tmp_path / "results")
    store(a_section("truth", a_finding("T1", what="second run")), tmp_path / "results")
    write_pages(tmp_path / "report.md", readme, tmp_path / "results")
    for text in ((tmp_path / "report.md").read_text("utf-8"), readme.read_text("utf-8")):
        assert "first run" not in text
        assert "second run" in text
        assert "plans" in text
