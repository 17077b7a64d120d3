"""What instructions say and leave out: a fixed order, budgets that hold, and stored text only inside fences."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.notes.playbook import PLAYBOOK_KEY, SECTIONS, check_playbook
from nova_mcp.memory.tasks.instructions import evm
from nova_mcp.memory.tasks.instructions.budget import ADDENDA_CHARS, DROPPED_FIRST, TEXT_CHARS, fit_addenda, weight
from nova_mcp.memory.tasks.instructions.learn_rules import DELIVERABLE, Floors, Progress
from nova_mcp.memory.tasks.instructions.playbook_template import SECTION_CONTENTS
from nova_mcp.memory.tasks.instructions.text import (
    LOOP,
    SAFETY,
    Coverage,
    LearnBrief,
    Matter,
    Quote,
    RunBrief,
    Visit,
    fenced,
    instructions_text,
)
from nova_mcp.tools.catalogue import load_catalogue

RUN = RunBrief("f" * 32, "active", 3, "partial", 4, 10, "units_remaining", "name: Price check\ncursor: page 2")
CONTRACT = Coverage("f" * 32, 6, "nova_full_page_text_v1")
LEARN = LearnBrief("shop.test", Floors(8, 12), (Visit("claim_1", Progress(3, 2)),), (("tab_2", "claim_required"),))
NOTE = Quote(
    "user", "site=shop.test note=LOGIN enforcement=block", "Use the staff door.", "site note LOGIN", enforced=True
)


def fences(text: str) -> list[str]:
    """The text outside and inside fences, alternately, as Markdown reads it."""
    parts, mark, held = [], "", []
    for line in text.splitlines():
        run = re.match(r"(`{3,})(.*)", line)
        if run and not mark:
            parts.append("\n".join(held))
            mark, held = run.group(1), [line]
        elif run and mark and len(run.group(1)) >= len(mark) and not run.group(2).strip():
            parts.append("\n".join([*held, line]))
            mark, held = "", []
        else:
            held.append(line)
    return [*parts, "\n".join(held)]


# -- order


@pytest.mark.parametrize("detail", ["compact", "full"])
@pytest.mark.parametrize("learn", [None, LEARN])
def test_the_parts_stand_in_their_order(detail: str, learn: LearnBrief | None) -> None:
    matter = Matter(detail, (RUN,), CONTRACT, learn, (NOTE,))  # type: ignore[arg-type]
    text = instructions_text(matter)
    mode = "## Checking claims (EVM)" if learn is None else "## Learn Mode"
    marks = [SAFETY, LOOP, "## Open runs", "## Coverage contract", mode, "## Stored notes, quoted"]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert ("## Checking claims" in text) is (learn is None)


def test_without_runs_it_says_how_to_begin_one() -> None:
    text = instructions_text(Matter())
    assert "None of yours" in text
    assert "## Coverage contract" not in text
    assert "## Stored notes" not in text


def test_runs_are_told_by_their_figures_and_reason() -> None:
    text = instructions_text(Matter(runs=(RUN, RunBrief("a" * 32, "pending", 0, "unknown", 0, 0, None))))
    assert (
        f"- {'f' * 32} · active · rev 3 · 4 of 10 units reported done · discovery partial · open: units_remaining"
        in text
    )
    assert f"- {'a' * 32} · pending · rev 0 · no units yet · discovery unknown · ready to complete" in text


def test_learn_mode_tells_floors_progress_template_and_what_it_forbids() -> None:
    text = instructions_text(Matter(learn=LEARN))
    assert "8 surfaces and 12 interactions" in text
    assert "Active in claim_1: 3 of 8 surfaces, 2 of 12 interactions, below a floor." in text
    assert "Not active on tab_2 (claim_required)" in text
    for word in ("send", "buy", "delete", "publish", "change an account"):
        assert re.search(rf"Never send[^.]*{word}" if word != "send" else "Never send", text)
    assert [name for name in SECTIONS if f"## {name}" not in text] == []
    full = instructions_text(Matter("full", learn=LEARN))
    assert all(f"`## {name}`: {holds}" in full for name, holds in SECTION_CONTENTS)


def test_a_playbook_after_the_template_is_complete() -> None:
    text = "\n".join(f"## {name}\n{holds}" for name, holds in SECTION_CONTENTS)
    assert check_playbook(text).complete
    assert DELIVERABLE == PLAYBOOK_KEY


def test_evm_states_its_minimums_and_sections() -> None:
    assert f"needs {evm.CRITICAL_SOURCES} independent sources" in evm.TEXT
    assert all(name.replace("_", " ") in evm.TEXT for name in evm.CRITICAL_DOMAINS)
    assert "Results, Sources, Unknowns" in evm.TEXT
    assert "registrable domains differ" in evm.TEXT


def test_every_tool_the_text_names_exists() -> None:
    known = {spec.name for spec in load_catalogue()}
    for matter in (Matter("full", (RUN,), CONTRACT, None), Matter("full", learn=LEARN), Matter()):
        named = set(re.findall(r"\bnova\.([a-z_]+)", instructions_text(matter))) - {"guarded_"}
        assert named - known == set()


def test_tools_are_named_as_the_client_was_shown_them_and_quotes_stay() -> None:
    quote = Quote("agent", "operator-note=1", "Call nova.perceive first.", "operator note 1")
    text = instructions_text(Matter(quotes=(quote,)), "nova_")
    assert "nova_tab_claim" in text
    assert re.findall(r"nova\.\w+", text) == ["nova.perceive"]


# -- fences


def test_a_fence_names_the_author() -> None:
    assert fenced(NOTE).splitlines() == [
        "```quote author=user site=shop.test note=LOGIN enforcement=block",
        "Use the staff door.",
        "```",
    ]


@pytest.mark.parametrize("sign", ["\x1b", "\x9b", "\x90", "\x85", "\u200f", "\u061c", "\u202e", "\u2069", "\U000e0041"])
def test_a_fence_holds_nothing_that_steers_a_terminal_or_hides(sign: str) -> None:
    assert "one 2J two" in fenced(replace(NOTE, text=f"one{sign}2J two"))


def test_what_agents_called_a_run_stands_in_a_fence_only() -> None:
    parts = fences(instructions_text(Matter(runs=(RUN,))))
    assert all("Price check" not in outside for outside in parts[::2])
    (inside,) = parts[1::2]
    assert inside.splitlines()[:2] == [f"```quote author=agent run {'f' * 32}", "name: Price check"]


texts = st.text(st.sampled_from("`~ab \n\r#\u2028\x00") | st.characters(codec="utf-8"), min_size=1, max_size=400)


@given(texts)
def test_nothing_inside_a_fence_can_close_it(text: str) -> None:
    marked = fences(
        instructions_text(Matter(quotes=(Quote("agent", "memory=1", f"{text}\nSECRET ORDER", "memory 1"),)))
    )
    assert all("SECRET ORDER" not in outside for outside in marked[::2])
    assert len(marked) == 3


# -- budgets

quotes = st.builds(
    Quote,
    st.sampled_from(["user", "agent"]),
    st.just("site=shop.test note=KEY enforcement=block"),
    st.integers(1, 3000).map(lambda size: "x" * size),
    st.integers(0, 99).map(lambda number: f"site note KEY_{number}"),
    st.booleans(),
)
matters = st.builds(
    Matter,
    st.sampled_from(["compact", "full"]),
    st.lists(st.just(RUN), max_size=3).map(tuple),
    st.none() | st.just(CONTRACT),
    st.none()
    | st.builds(
        LearnBrief,
        st.just("a" * 63 + ".example"),
        st.just(Floors(100, 200)),
        st.lists(st.just(Visit("claim_" + "f" * 16, Progress(100, 200))), max_size=32).map(tuple),
        st.lists(st.just(("tab_123456", "domain_mismatch")), max_size=32).map(tuple),
    ),
    st.lists(quotes, max_size=40).map(tuple),
)


@given(matters)
def test_the_text_keeps_to_its_limit_and_never_loses_its_rules(matter: Matter) -> None:
    text = instructions_text(matter)
    assert len(text) <= TEXT_CHARS[matter.detail]
    assert text.startswith(SAFETY)
    assert LOOP in text


@given(st.lists(quotes, min_size=1, max_size=40).map(tuple))
def test_every_quote_stands_in_the_text_or_is_counted_as_missing(given_quotes: tuple[Quote, ...]) -> None:
    text = instructions_text(Matter(quotes=given_quotes))
    told = sum(part.startswith("```") for part in fences(text))
    line = re.search(r"Not quoted here for room, but in the blocks of this answer: (.*?)(?: and (\d+) more)?\.$", text)
    missing = 0 if line is None else len(line.group(1).split(", ")) + int(line.group(2) or 0)
    assert told + missing == len(given_quotes)


def test_enforced_notes_are_quoted_before_hints() -> None:
    hints = tuple(Quote("agent", "note=H", "h" * 900, f"hint {n}") for n in range(6))
    text = instructions_text(Matter(quotes=(*hints, NOTE)))
    assert fenced(NOTE) in text
    assert "hint 5" in text.splitlines()[-1]


blocks = st.dictionaries(
    st.sampled_from([*DROPPED_FIRST, "taskAwareness", "domainNotes", "evm", "learnMode", "pksHealthWarnings"]),
    st.none() | st.integers(0, 12_000).map(lambda size: ["x" * size]),
)


@given(blocks)
def test_blocks_go_in_their_order_and_only_while_there_is_too_much(given_blocks: dict[str, list[str] | None]) -> None:
    found = fit_addenda(given_blocks)  # type: ignore[arg-type]
    held = [name for name in DROPPED_FIRST if given_blocks.get(name) is not None]
    assert list(found.omitted) == held[: len(found.omitted)]
    assert found.chars == sum(weight(block) for block in found.told.values())
    if found.chars > ADDENDA_CHARS:
        assert list(found.omitted) == held
    if found.omitted:
        last = given_blocks[found.omitted[-1]]
        assert found.chars + weight(last) > ADDENDA_CHARS  # type: ignore[arg-type]
    kept = {name for name, block in given_blocks.items() if block is not None} - set(found.omitted)
    assert {name for name, block in found.told.items() if block is not None} == kept


def test_a_block_weighs_what_it_is_on_the_wire() -> None:
    assert weight({"a": ["ä", 1]}) == len(json.dumps({"a": ["ä", 1]}, ensure_ascii=False, separators=(",", ":")))
    assert weight(None) == 0


@pytest.mark.parametrize("detail", ["compact", "full"])
@pytest.mark.parametrize("learn", [None, LearnBrief("shop.example", Floors(8, 12))])
def test_both_modes_name_the_tools_of_knowledge_and_when_to_use_them(detail: Any, learn: LearnBrief | None) -> None:
    text = instructions_text(Matter(detail=detail, learn=learn))
    names = {spec.canonical for spec in load_catalogue().bundle("pks_learning")}
    wanted = {name for name in names if name.startswith(("nova.learn_", "nova.pks_")) and "platform" not in name}
    assert len(wanted) == 12
    assert {name for name in wanted if not re.search(rf"{re.escape(name)}\b", text)} == set()
    assert "pks_learning" in text
