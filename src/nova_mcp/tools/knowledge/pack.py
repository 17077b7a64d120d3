"""Knowledge packs: entries as lines of JSON for carrying elsewhere, read back as strictly as what agents send."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isinf
from typing import Any, Final, Literal, Self

from pydantic import ValidationError, model_validator

from nova_mcp.memory.knowledge.model import DomainHint, Phenomenon, Playbook, Problem, ScopeName
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.knowledge.writes.content_rules import check_content, check_hint
from nova_mcp.memory.knowledge.writes.rules import Upsert, wished_content
from nova_mcp.memory.promotion.import_pack import Categories, Packed, name_of
from nova_mcp.tools.knowledge.params import Categories as CategoryNames
from nova_mcp.tools.knowledge.params import (
    HintParams,
    PhenomenonParams,
    ScopeText,
    id_problem,
    known_categories,
    texts_in,
)
from nova_mcp.tools.knowledge.result_parts import context_part, fingerprint_part, playbook_part
from nova_mcp.tools.spec import Params, Part

FORMAT: Final = "nova-knowledge"
VERSION: Final = 1
MAX_BYTES: Final = 32_000_000
MAX_LINE_CHARS: Final = 200_000
MAX_LINES: Final = 50_000
MAX_DEPTH: Final = 24
MOST_TOLD: Final = 20
HEADER: Final[dict[str, Any]] = {"format": FORMAT, "version": VERSION}


@dataclass(frozen=True, slots=True)
class LineProblem:
    line: int
    message: str


class BadPack(Exception):
    """The file is no pack, or not a whole one; nothing of it is taken."""

    def __init__(self, problems: Sequence[LineProblem]) -> None:
        super().__init__(problems[0].message)
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class PackLine:
    """One line of a pack: a piece of knowledge and what speaks against taking it."""

    number: int
    scope: ScopeName
    packed: Packed
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Pack:
    lines: tuple[PackLine, ...] = field(default=())

    def sites(self) -> Mapping[ScopeName, list[PackLine]]:
        found: dict[ScopeName, list[PackLine]] = {}
        # What a site is can be said only once something is known of it.
        for one in sorted(self.lines, key=lambda line: isinstance(line.packed, Categories)):
            found.setdefault(one.scope, []).append(one)
        return dict(sorted(found.items()))


class LineParams(Params):
    """`level` says how far an entry had come where it was written; here it has to begin anew."""

    scope: ScopeText
    level: Literal[1, 2] | None = None
    phenomenon: PhenomenonParams | None = None
    domain_hint: HintParams | None = None
    service_categories: CategoryNames | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        held = [one for one in (self.phenomenon, self.domain_hint, self.service_categories) if one is not None]
        if len(held) != 1:
            raise ValueError("a line holds one of phenomenon, domainHint and serviceCategories")
        entry = self.phenomenon or self.domain_hint
        if entry is not None and entry.id is None:
            raise ValueError("an entry of a pack needs its id")
        known_categories(self.service_categories)
        return self

    def packed(self, now_ms: int) -> Packed:
        if self.phenomenon is not None:
            return self.phenomenon.wish()
        if self.domain_hint is not None:
            return self.domain_hint.hint(now_ms)
        return Categories(tuple(dict.fromkeys(self.service_categories or ())))


# -- writing


def _json(part: Part) -> dict[str, Any]:
    return part.model_dump(mode="json", by_alias=True)


def _unlooked(playbook: Playbook) -> Playbook:
    """What a page showed stays here: it may name people, and elsewhere nobody could check it."""
    return replace(playbook, actions=tuple(replace(one, element=None) for one in playbook.actions))


def entry_line(scope: ScopeName, kept: Phenomenon | DomainHint) -> dict[str, Any]:
    """An entry without health, times, evidence, and anybody's name."""
    head: dict[str, Any] = {"scope": scope, "level": kept.level}
    if isinstance(kept, DomainHint):
        body: dict[str, Any] = {"id": kept.hint_id, "kind": kept.kind, "mode": kept.mode}
        body["selectors"] = list(kept.selectors)
        body |= {"extract": dict(kept.extract)} if kept.extract else {}
        return head | {"domainHint": body | {"enumerateMax": kept.enumerate_max}}
    content = kept.content
    body = {"id": kept.stable_id, "type": content.type, "fingerprint": _json(fingerprint_part(content.fingerprint))}
    if content.playbook is not None:
        body["playbook"] = _json(playbook_part(_unlooked(content.playbook)))
    return head | {"phenomenon": body | {"context": _json(context_part(content.context))}}


def categories_line(scope: ScopeName, names: Sequence[str]) -> dict[str, Any]:
    return {"scope": scope, "serviceCategories": list(names)}


# -- reading


def read_pack(text: str, now_ms: int, hides: Callable[[str], str] = str) -> Pack:
    """A whole pack, or BadPack with what is wrong, line by line. Entries that may not be stored carry their problems;
    `hides` takes known secrets out of a text."""
    rows = text.removeprefix("\ufeff").split("\n")
    if len(rows) > MAX_LINES:
        raise BadPack([LineProblem(1, f"a pack has at most {MAX_LINES} lines")])
    wrong: list[LineProblem] = []
    lines: list[PackLine] = []
    named: dict[tuple[str, str], int] = {}
    header = False
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            value = parsed(row)
            if not header:
                _check_header(value)
                header = True
                continue
            one = read_line(value, number, now_ms, hides)
            first = named.setdefault((one.scope, name_of(one.packed)), number)
            if first != number:
                raise ValueError(f"it says again what line {first} says of the same entry")
            lines.append(one)
        except ValueError as error:
            wrong.append(LineProblem(number, str(error)))
            if not header or len(wrong) >= MOST_TOLD:
                break
    if not header and not wrong:
        wrong.append(LineProblem(1, "the file is empty; a pack begins with its format and version"))
    if wrong:
        raise BadPack(wrong)
    return Pack(tuple(lines))


def parsed(row: str) -> Any:
    """One JSON value; ValueError for what is none, and for what two readers could understand differently."""
    if len(row) > MAX_LINE_CHARS:
        raise ValueError(f"the line is longer than {MAX_LINE_CHARS} characters")
    try:
        value = json.loads(row, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at character {error.colno}") from None
    if not _shallow(value, MAX_DEPTH):
        raise ValueError("it is nested too deeply")
    try:
        "\n".join(texts_in(value)).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it holds half a character") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs):
        raise ValueError("it says something twice")
    return held


def _float(text: str) -> float:
    if isinf(number := float(text)):
        raise ValueError(f"{text[:40]} is not a number that can be kept")
    return number


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _shallow(value: Any, depth: int) -> bool:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(_shallow(one, depth - 1) for one in held)


def _check_header(value: Any) -> None:
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f'this is no knowledge pack: its first line is {{"format":"{FORMAT}","version":{VERSION}}}')
    version = value.get("version")
    if type(version) is not int or version < 1:
        raise ValueError("the pack does not say its version")
    if version > VERSION:
        raise ValueError(f"the pack is of version {version}; this Nova reads version {VERSION}")
    if value.keys() - HEADER.keys():
        raise ValueError("the first line holds format and version only")


def read_line(value: Any, number: int, now_ms: int, hides: Callable[[str], str] = str) -> PackLine:
    try:
        given = LineParams.model_validate(value)
    except ValidationError as error:
        raise ValueError("; ".join(_wrong(error))) from None
    scope = scope_of(given.scope)
    if isinstance(scope, Problem):
        raise ValueError(f"scope: {scope.message}")
    packed = given.packed(now_ms)
    return PackLine(number, scope, packed, tuple(_problems(given, packed, hides)))


def _wrong(error: ValidationError) -> Iterator[str]:
    for one in error.errors(include_url=False, include_input=False, include_context=False)[:3]:
        where = ".".join(str(part) for part in one["loc"])
        yield f"{where[:120]}: {one['msg'][:200]}" if where else one["msg"][:200]


def _problems(given: LineParams, packed: Packed, hides: Callable[[str], str]) -> Iterator[Problem]:
    """The same refusals that an agent meets which writes the entry by hand."""
    texts = texts_in(given.model_dump(mode="json", by_alias=True))
    if any(hides(text) != text for text in texts):
        yield Problem("pks.secret_like", "It holds one of the stored secrets.")
    match packed:
        case Upsert():
            yield from _named(packed.stable_id)
            yield from check_content(wished_content(None, packed))
        case DomainHint():
            yield from _named(packed.hint_id)
            yield from check_hint(packed)
        case Categories():
            return


def _named(stable_id: str) -> Iterator[Problem]:
    if (problem := id_problem(stable_id, "id")) is not None:
        yield problem
