"""Knowledge as the store keeps it: plain JSON that leaves out what is usual, and back; pure."""

import dataclasses
import functools
import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from nova_mcp.verification.model import OMITTED, Assertion

T = TypeVar("T")

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


def encoded(value: object) -> str:
    return _ENCODER.encode(_plain(value))


def decoded(kind: type[T], text: str) -> T:
    """What `encoded` wrote, as the type that the caller expects."""
    found: T = _typed(kind, json.loads(text))
    return found


def _plain(value: object) -> Any:
    match value:
        case Assertion():
            told = {"key": value.fact_key, "is": value.operator, "frame": value.frame_id}
            return told if value.expected is OMITTED else told | {"than": value.expected}
        case tuple() | list():
            return [_plain(one) for one in value]
        case frozenset():
            return sorted((_plain(one) for one in value), key=_ENCODER.encode)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(held)
            for field in dataclasses.fields(value)
            if (held := getattr(value, field.name)) != field.default
        }
    return value


def _typed(kind: Any, data: Any) -> Any:
    if kind is Assertion:
        return Assertion(data["key"], data["is"], data.get("than", OMITTED), data.get("frame"))
    if dataclasses.is_dataclass(kind):
        return _object(kind, data)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if data is None:
            return None
        (only,) = (one for one in get_args(kind) if one is not NoneType)
        return _typed(only, data)
    if origin is tuple:
        first, *rest = get_args(kind)
        if rest == [Ellipsis]:
            return tuple(_typed(first, one) for one in data)
        return tuple(_typed(one, part) for one, part in zip((first, *rest), data, strict=True))
    if origin is frozenset:
        (member,) = get_args(kind)
        return frozenset(_typed(member, one) for one in data)
    if origin is Literal or kind is Any:
        return data
    # A whole number may stand where a fraction is meant; JSON does not tell them apart.
    return float(data) if kind is float else data


def _object(kind: Any, data: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    return kind(**{name: _typed(hints[name], held) for name, held in data.items() if name in hints})


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
