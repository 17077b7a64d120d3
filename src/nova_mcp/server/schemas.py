"""Output schemas as clients may rely on them: they say what fields mean and never forbid new ones."""

from collections.abc import Mapping

from nova_mcp.observation.model import Json

_ONE = ("items", "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_DROPPED = frozenset({"title", "required", "unevaluatedProperties"})


def opened(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Without closed objects, and with no required field but `ok`: answers leave empty fields out."""
    root = _open(schema)
    root["type"] = "object"
    properties = root.get("properties")
    if isinstance(properties, dict) and "ok" in properties:
        root["required"] = ["ok"]
    return root


def _open(schema: Mapping[str, Json]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "additionalProperties" and value is False):
            continue
        if key in _ONE and isinstance(value, dict):
            result[key] = _open(value)
        elif key in _MANY and isinstance(value, list):
            result[key] = [_open(part) if isinstance(part, dict) else part for part in value]
        elif key in _NAMED and isinstance(value, dict):
            result[key] = {name: _open(part) if isinstance(part, dict) else part for name, part in value.items()}
        else:
            result[key] = value
    return result
