"""docs/report.md and the tables of the README: pure functions of the stored sections."""

import re
from collections.abc import Iterator, Mapping, Sequence

from bench.aims import GROUPS, Aim, Group
from bench.markdown import folded, plain, table
from bench.plan import PLAN, Planned
from bench.report_verdicts import Judged, Told, enough, verdicts, word_of
from bench.results import Environment, Section, Table

# Longer tables are folded away.
OPEN_ROWS = 16
# More figures of one aim than this that came to the same good end are told in one row of the README.
MOST_ALIKE = 8
# Half a process for every core is a machine that had other things to do.
QUIET = 0.5
_MARKED = re.compile(r"(<!-- report:(\w+) -->\n)(.*?)(<!-- /report -->)", re.DOTALL)
_LOUD = {"missed": "**missed**", "not measured": "**not measured**"}

INTRODUCTION = """\
# Measured

Made by `make report` from the results stored under `bench/results/`; edit neither this page nor those. Every figure
comes from a command under `bench/`; where something is compared, all sides run in the same run on the same machine.
Losses stand here like wins. `python -m bench report --only NAME` measures one section anew and keeps the others;
with `--long` in its long form, which stands beside the short one.

*Met on a smaller sample*: nothing speaks against the aim, but it asks for more than this form counts. *Met in part*:
some benchmark that belongs to the aim has no result. *Told*: a figure without a bound."""


def _word(word: str) -> str:
    return _LOUD.get(word, word)


# -- what everything ran on


def _environments(sections: Sequence[Section]) -> Iterator[tuple[Environment, list[str]]]:
    for one in dict.fromkeys(section.environment for section in sections):
        yield one, [_label(section) for section in sections if section.environment == one]


def _environment(one: Environment) -> str:
    machine = f"{one.cores} cores, {one.memory_gb:g} GB, {one.kernel}"
    versions = ", ".join(f"{name} {version}" for name, version in one.versions)
    return f"{plain(machine)} · {plain(versions)} · commit `{one.commit}`"


def machines(sections: Sequence[Section]) -> str:
    found = list(_environments(sections))
    if not found:
        return "Nothing has been measured yet."
    if len(found) == 1:
        return _environment(found[0][0])
    return "\n".join(f"- {_environment(one)}: {', '.join(names)}" for one, names in found)


# -- promises


def _label(section: Section) -> str:
    return f"{section.name}{', long form' if section.form == 'long' else ''}"


def _link(section: Section) -> str:
    return f"[{_label(section)}](#{section.name})"


def _measured(one: Told) -> str:
    smaller = f"; the aim asks for {one.finding.smaller}" if one.finding.smaller else ""
    return f"{plain(one.finding.measured)}{plain(smaller)}"


def _rows(one: Judged) -> Iterator[list[str]]:
    head = f"{one.aim.key} {one.aim.name}"
    yield [f"**{head}**", "", "", f"*{plain(one.aim.promise)}*", f"**{one.word}**"]
    for told in one.told:
        n, bound = f"{told.finding.n:,}", plain(told.finding.bound)
        yield [f"{plain(told.finding.what)} ({_link(told.section)})", _measured(told), n, bound, word_of(told.finding)]
    if one.word != "not measured":
        yield from ([f"no whole result from {name}", "", "", "", "not measured"] for name in one.missing)


def promises(sections: Sequence[Section]) -> str:
    rows = [row for one in verdicts(sections) for row in _rows(one)]
    return table(("what", "measured", "n", "aim", ""), rows)


def tally(sections: Sequence[Section]) -> str:
    words = [one.word for one in verdicts(sections)]
    counted = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    return f"Of {len(words)} aims: {', '.join(counted)}."


# -- sections


def _busy(section: Section) -> bool:
    return section.load > QUIET * section.environment.cores


def _when(section: Section) -> str:
    words = f" (`{' '.join(section.arguments)}`)" if section.arguments else ""
    load = f"load {section.load:g} on {section.environment.cores} cores"
    busy = f"; the machine was busy ({load})" if _busy(section) else ""
    took = f"Measured {section.measured_at} UTC in {section.seconds:.0f} s, {section.form} form{words}"
    return f"{took}, commit `{section.environment.commit}`{busy}."


def _table(one: Table) -> str:
    cells = [[plain(cell) for cell in row] for row in one.rows]
    body = table([plain(column) or " " for column in one.columns], cells, numbers=True)
    if len(one.rows) > OPEN_ROWS:
        return folded(f"{plain(one.title)} ({len(one.rows)} rows)", body)
    return f"**{plain(one.title)}**\n\n{body}"


def _beside(section: Section) -> Iterator[str]:
    """The figures of a section beside their aims, so that no table stands without its verdict."""
    for one in section.findings:
        bound = f", aim {plain(one.bound)}" if one.bound else ""
        smaller = f"; the aim asks for {plain(one.smaller)}" if one.smaller else ""
        said = f"{plain(one.what)}: {plain(one.measured)} (n = {one.n:,}{bound}{smaller})"
        yield f"- {one.aim} {_word(word_of(one))} · {said}"


def section_text(section: Section) -> str:
    parts = [_when(section)]
    if section.status != "done":
        parts.append(f"**This run did not come to its end: {plain(section.problem)}.** What it had told by then:")
    parts += [f"**Not measured: {plain(reason)}.**" for reason in section.left_out]
    if beside := "\n".join(_beside(section)):
        parts.append(beside)
    parts += [_table(one) for one in section.tables]
    if section.remarks:
        parts.append("\n".join(f"- {plain(text)}" for text in section.remarks))
    return "\n\n".join(parts)


def _planned(one: Planned, sections: Sequence[Section]) -> str:
    mine = [section for section in sections if section.name == one.name]
    head = f"### {one.name}\n\n{one.about}"
    if not mine:
        return f"{head}\n\n**Not measured yet.** `python -m bench report --only {one.name}`"
    return "\n\n".join([head, *(section_text(section) for section in mine)])


def page(sections: Sequence[Section]) -> str:
    """The whole report."""
    parts = [
        INTRODUCTION,
        f"## Where\n\n{machines(sections)}",
        f"## Aims\n\n{tally(sections)}\n\n{promises(sections)}",
        "## Benchmarks",
        *(_planned(one, sections) for one in PLAN),
    ]
    return "\n\n".join(parts) + "\n"


# -- the README


def _days(sections: Sequence[Section]) -> str:
    days = sorted({section.measured_at.partition(" ")[0] for section in sections})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _missing_row(aim: Aim, names: Sequence[str]) -> list[str]:
    return [f"{aim.key} {aim.name} ({', '.join(names)})", "", "", plain(aim.promise), _word("not measured")]


def _readme_rows(one: Judged) -> Iterator[list[str]]:
    words = [word_of(told.finding) for told in one.told]
    many = {word for word in words if word.startswith("met") and words.count(word) > MOST_ALIKE}
    for told, word in zip(one.told, words, strict=True):
        if word not in many:
            cells = [f"{told.finding.n:,}", plain(told.finding.bound), _word(word)]
            yield [f"{one.aim.key} {plain(told.finding.what)}", _measured(told), *cells]
    for word in dict.fromkeys(word for word in words if word in many):
        head = f"{one.aim.key} {one.aim.name}: {words.count(word)} figures"
        yield [head, "[each of them](docs/report.md#aims)", "", plain(one.aim.promise), word]
    if one.missing:
        yield _missing_row(one.aim, one.missing)


def readme_table(group: Group, sections: Sequence[Section]) -> str:
    """One table of the README: the figures of its aims, every miss and gap included, many that are alike in one row."""
    those = [enough(one) for one in verdicts(sections) if one.aim.group == group]
    used = [told.section for one in those for told in one.told]
    rows = [row for one in those for row in _readme_rows(one)]
    when = f"\n\nMeasured {_days(used)} by `make report`; [every table](docs/report.md)." if used else ""
    return table(("what", "measured", "n", "aim", ""), rows) + when


def readme_tables(sections: Sequence[Section]) -> dict[str, str]:
    return {group: readme_table(group, sections) for group in GROUPS}


def filled(text: str, tables: Mapping[str, str]) -> str:
    """The text with every marked place holding its table; a name nobody knows is a mistake."""

    def put(found: re.Match[str]) -> str:
        return f"{found[1]}{tables[found[2]]}\n{found[4]}"

    if unknown := [name for name in marked(text) if name not in tables]:
        raise KeyError(f"no table is called {', '.join(unknown)}; there are: {', '.join(tables)}")
    return _MARKED.sub(put, text)


def marked(text: str) -> list[str]:
    return [found[2] for found in _MARKED.finditer(text)]
