"""From raw JSON to typed arguments, with messages that say what was wrong and what is allowed."""

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.tools.spec import Params

P = TypeVar("P", bound=Params)

SHOWN_PROBLEMS = 3
SHOWN_CHARS = 80
# Far more than any tool asks for, a call in a call with a contract in it included.
MAX_DEPTH = 32


def parse_arguments(params: type[P], arguments: Mapping[str, Json]) -> P:
    """Validate strictly; `_meta` is the protocol's and always welcome."""
    given = {key: value for key, value in arguments.items() if key != "_meta"}
    if deeper_than(given, MAX_DEPTH):
        raise _too_deep()
    try:
        parsed = params.model_validate(given)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        told = "; ".join(_sentence(params, problem) for problem in problems[:SHOWN_PROBLEMS])
        more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        first = ".".join(str(part) for part in problems[0]["loc"])
        raise InvalidParams(
            "invalid_params",
            told + more,
            details={"argument": first[:SHOWN_CHARS]} if first else {},
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if _beyond_numbers(given):
        # Where a field says nothing about numbers: 1e999 is JSON to read, and nothing that could ever be answered.
        raise InvalidParams("invalid_params", "a number is too large to be kept", "Nothing ran. Send it as a text.")
    return parsed


def _beyond_numbers(given: object) -> bool:
    layer: list[object] = [given]
    while layer:
        if any(isinstance(one, float) and not isfinite(one) for one in layer):
            return True
        layer = [inner for one in layer for inner in _inside(one)]
    return False


def _too_deep() -> InvalidParams:
    return InvalidParams("invalid_params", "arguments are nested too deeply", "Nothing ran. Send flatter JSON.")


def deeper_than(value: object, levels: int) -> bool:
    """Whether arrays and objects stand in each other more often than that; whatever the depth, without recursion."""
    layer: list[object] = [value]
    for _ in range(levels):
        layer = [inner for one in layer for inner in _inside(one)]
        if not layer:
            return False
    return any(isinstance(one, Mapping | list) for one in layer)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def kept_arguments(params: type[Params], arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    """What a tool passes over is not kept either: nobody knows what is in it."""
    if params.model_config.get("extra") != "ignore":
        return arguments
    names = accepted_names(params)
    return {name: value for name, value in arguments.items() if name in names}


def accepted_names(params: type[BaseModel]) -> list[str]:
    return [entry.alias or name for name, entry in params.model_fields.items()]


def shown(value: Any) -> str:
    """A value as it may be quoted in a message: one line, bounded, never NaN."""
    if isinstance(value, str):
        cut = value if len(value) <= SHOWN_CHARS else f"{value[:SHOWN_CHARS]}… ({len(value)} characters)"
        return json.dumps(cut, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, float) and value != value:
        return "NaN"
    return str(value).lower() if isinstance(value, bool) else str(value)[:SHOWN_CHARS]


_TYPES = {
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "int_from_float": "an integer",
    "finite_number": "a finite number",
}


def _bounds(context: Mapping[str, Any]) -> str:
    words = {
        "ge": "at least {}",
        "gt": "more than {}",
        "le": "at most {}",
        "lt": "less than {}",
        "min_length": "at least {} long",
        "max_length": "at most {} long",
        "pattern": "of the form {}",
    }
    return " and ".join(phrase.format(context[key]) for key, phrase in words.items() if key in context)


def _model_at(params: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel]:
    """The model whose field an error is about; the outermost one where the path leaves the models."""
    found = params
    for part in (part for part in path if isinstance(part, str)):
        inner = next((entry for name, entry in found.model_fields.items() if part == (entry.alias or name)), None)
        models = [] if inner is None else list(_models_in(inner.annotation))
        if not models:
            return params
        found = models[0]
    return found


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _sentence(params: type[Params], problem: ErrorDetails) -> str:
    where = ".".join(str(part) for part in problem["loc"]) or "arguments"
    where = where if len(where) <= SHOWN_CHARS else where[:SHOWN_CHARS] + "…"
    kind, context, value = problem["type"], problem.get("ctx", {}), problem.get("input")
    if kind == "extra_forbidden":
        names = accepted_names(_model_at(params, problem["loc"][:-1]))
        near = get_close_matches(str(problem["loc"][-1]), names, n=1)
        guess = f" (did you mean {near[0]}?)" if near else ""
        return f"{where} is not an argument{guess}; accepted: {', '.join(names)}"
    if kind == "missing":
        return f"{where} is required"
    if kind == "literal_error":
        allowed = str(context.get("expected", "")).replace("'", "").replace(" or ", ", ").replace(", ", " | ")
        return f"{where} must be one of {allowed} (received {shown(value)})"
    if kind in _TYPES:
        return f"{where} must be {_TYPES[kind]} (received {shown(value)})"
    if limits := _bounds(context):
        return f"{where} must be {limits} (received {shown(value)})"
    reason = context.get("error", problem["msg"])
    return f"{where}: {reason}" if problem["loc"] else str(reason)
