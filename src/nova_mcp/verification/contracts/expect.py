"""The short form of a contract: a few lines that say what the page should show afterwards."""

import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote

from nova_mcp.verification.contracts.fact_keys import UnknownFact, bare_positions, parse_fact
from nova_mcp.verification.model import Assertion, AssertionSet, Contract

MAX_LINES: Final = 6
_STATUS: Final = re.compile(r"[1-5](xx|\d\d)")
_METHOD: Final = re.compile(r"[A-Za-z]+")


class BadExpectation(ValueError):
    """A line that says nothing Nova could check."""

    def __init__(self, line: str, why: str) -> None:
        super().__init__(f'"{line[:120]}" {why}.')
        self.line = line


def compile_expect(lines: Sequence[str]) -> Contract:
    """The contract that a few lines stand for: all of them must come true, and none of those marked with a !."""
    if not 1 <= len(lines) <= MAX_LINES:
        raise BadExpectation("expect", f"takes 1 to {MAX_LINES} lines, got {len(lines)}")
    wanted: list[Assertion] = []
    refused: list[tuple[Assertion, ...]] = []
    for line in lines:
        text = line.strip()
        if text.startswith("!"):
            refused.append(_assertions(line, text[1:].lstrip()))
        else:
            wanted += _assertions(line, text)
    return Contract(success=AssertionSet(all=tuple(wanted)), forbidden=_any_of(refused))


def _any_of(refused: Sequence[tuple[Assertion, ...]]) -> AssertionSet:
    if len(refused) == 1:
        return AssertionSet(all=refused[0])
    single = tuple(assertions[0] for assertions in refused if len(assertions) == 1)
    ranges = tuple(AssertionSet(all=assertions) for assertions in refused if len(assertions) > 1)
    if not ranges:
        return AssertionSet(any=single)
    return AssertionSet(either=(AssertionSet(any=single), *ranges) if single else ranges)


def _assertions(line: str, text: str) -> tuple[Assertion, ...]:
    kind, colon, rest = text.partition(":")
    compile_line = _KINDS.get(kind.strip())
    if not colon or compile_line is None:
        raise BadExpectation(line, f"begins with none of {', '.join(f'{name}:' for name in _KINDS)}")
    if not rest.strip():
        raise BadExpectation(line, f"says nothing after {kind}:")
    assertions = compile_line(line, rest.strip())
    for assertion in assertions:
        try:
            parse_fact(assertion.fact_key)
        except UnknownFact as unknown:
            raise BadExpectation(line, "can't be read as an expectation") from unknown
    return assertions


def _text(line: str, rest: str) -> tuple[Assertion, ...]:
    return (Assertion(f"page.shows@{quote(rest, safe='')}", "eq", expected=True),)


def _url(line: str, rest: str) -> tuple[Assertion, ...]:
    return (Assertion(f"page.urlMatches@{quote(rest, safe='')}", "eq", expected=True),)


def _gone(line: str, rest: str) -> tuple[Assertion, ...]:
    return (Assertion(f"dom.{_selector(line, rest)}@gone", "eq", expected=True),)


def _visible(line: str, rest: str) -> tuple[Assertion, ...]:
    return (Assertion(f"dom.{_selector(line, rest)}@visible", "eq", expected=True),)


def _value(line: str, rest: str) -> tuple[Assertion, ...]:
    # CSS has = only inside brackets and quotes, so the first one outside of them ends the selector.
    signs = bare_positions(rest, "=")
    if not signs:
        raise BadExpectation(line, "names no value; write value:<css>=<value>")
    css = _selector(line, rest[: signs[0]])
    return (Assertion(f"dom.{css}@value", "eq", rest[signs[0] + 1 :]),)


def _selector(line: str, css: str) -> str:
    css = css.strip()
    if not css:
        raise BadExpectation(line, "has no selector")
    if bare_positions(css, "@"):
        raise BadExpectation(line, "takes a CSS selector and nothing else")
    # Something left open, or closed twice, would swallow the field that is put behind it.
    if bare_positions(f"{css}\0", "\0") != [len(css)] or bare_positions(css, "]") or bare_positions(css, ")"):
        raise BadExpectation(line, "has a selector whose brackets or quotes don't match")
    return css


def _response(line: str, rest: str) -> tuple[Assertion, ...]:
    words = rest.split()
    status = words.pop() if len(words) > 1 and _STATUS.fullmatch(words[-1]) else "2xx"
    method = words.pop(0).upper() if len(words) > 1 and _METHOD.fullmatch(words[0]) else None
    if len(words) != 1 or not ("/" in words[0] or "*" in words[0]):
        raise BadExpectation(line, "is not of the form response:[METHOD] <url-glob> [status], like POST /api/* 2xx")
    fact = f"network.response@{quote(f'{method} {words[0]}' if method else words[0], safe='')}"
    if not status.endswith("xx"):
        return (Assertion(fact, "eq", int(status)),)
    hundred = int(status[0]) * 100
    return (Assertion(fact, "gte", hundred), Assertion(fact, "lte", hundred + 99))


_KINDS: Final[dict[str, Callable[[str, str], tuple[Assertion, ...]]]] = {
    "text": _text,
    "url": _url,
    "gone": _gone,
    "visible": _visible,
    "value": _value,
    "response": _response,
}
