"""Knowledge as the store keeps it: plain JSON that leaves out what is usual, and back; pure."""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from nova_mcp.verification.model import OMITTED, Assertion

T = TypeVar("T")

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), sort_keys=True)
_ATOMS: Final = frozenset({str, int, float, bool, NoneType})


def encoded(value: object) -> str:
    return _ENCODER.encode(_plain(value))


def decoded(kind: type[T], text: str) -> T:
    """What `encoded` wrote, as the type that the caller expects."""
    wanted: Any = kind
    found: T = _reader(wanted)(json.loads(text))
    return found


def _plain(value: object) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    match value:
        case Assertion():
            told = {"key": value.fact_key, "is": value.operator, "frame": value.frame_id}
            return told if value.expected is OMITTED else told | {"than": value.expected}
        case tuple() | list():
            return [_plain(one) for one in value]
        case frozenset():
            return sorted((_plain(one) for one in value), key=_ENCODER.encode)
    if dataclasses.is_dataclass(kind):
        return {name: _plain(held) for name, default in _fields(kind) if (held := getattr(value, name)) != default}
    return value


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in dataclasses.fields(kind))


def _same(data: Any) -> Any:
    return data


# Made once per type: every call on a known control reads an entry.
@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    if kind is Assertion:
        return _assertion
    if dataclasses.is_dataclass(kind):
        return functools.partial(_object, kind)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        (only,) = (one for one in get_args(kind) if one is not NoneType)
        return _optional(_reader(only))
    if origin is tuple:
        first, *rest = get_args(kind)
        return _several(_reader(first)) if rest == [Ellipsis] else _row(tuple(map(_reader, (first, *rest))))
    if origin is frozenset:
        (member,) = get_args(kind)
        read = _reader(member)
        return lambda data: frozenset(map(read, data))
    # A whole number may stand where a fraction is meant; JSON does not tell them apart.
    return float if kind is float else _same


def _assertion(data: Mapping[str, Any]) -> Assertion:
    return Assertion(data["key"], data["is"], data.get("than", OMITTED), data.get("frame"))


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda data: None if data is None else read(data)


def _several(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return tuple if read is _same else lambda data: tuple(map(read, data))


def _row(readers: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    return lambda data: tuple(read(part) for read, part in zip(readers, data, strict=True))


def _object(kind: Any, data: Mapping[str, Any]) -> Any:
    readers = _readers(kind)
    return kind(**{name: readers[name](held) for name, held in data.items() if name in readers})


@functools.cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
