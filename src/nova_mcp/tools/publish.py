"""What clients are shown of a tool: a lean schema, hints derived from its effect, and the generated reference."""

import json
from collections.abc import Mapping
from typing import Any

from nova_mcp.errors import FAMILIES, Killed, NovaError
from nova_mcp.evidence.model import Effect
from nova_mcp.tools import MANIFEST_VERSION
from nova_mcp.tools.catalogue import BUNDLES, Catalogue
from nova_mcp.tools.spec import ToolSpec

_KEPT = ("type", "enum", "items", "properties", "required", "description", "const")


def lean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Names, types, enums, what is required and one-line texts; the server checks the rest itself."""
    return _lean(schema, schema.get("$defs", {}))


def listed_schema(spec: ToolSpec) -> dict[str, Any]:
    """The schema as every client pays for it: rare arguments go through the door, shared ones are explained once."""
    schema = spec.params.model_json_schema(by_alias=True)
    lean = lean_schema(schema)
    shown: dict[str, Any] = {}
    for name, field in lean.get("properties", {}).items():
        marks = schema["properties"][name]
        if marks.get("rare"):
            continue
        taught = marks.get("taughtBy", spec.name) == spec.name
        shown[name] = field if taught else {key: value for key, value in field.items() if key != "description"}
    return {**lean, "properties": shown} if "properties" in lean else lean


def _lean(node: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    if (ref := node.get("$ref")) is not None:
        node = {**defs[ref.rsplit("/", 1)[1]], **{key: value for key, value in node.items() if key == "description"}}
    if (arms := node.get("anyOf")) is not None:
        real = [arm for arm in arms if arm.get("type") != "null"]
        if len(real) == 1:
            rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
            return _lean({**real[0], **rest}, defs)
        return {"anyOf": [_lean(arm, defs) for arm in real]}
    out: dict[str, Any] = {}
    for key in _KEPT:
        if key not in node:
            continue
        value = node[key]
        if key == "properties":
            value = {name: _lean(entry, defs) for name, entry in value.items()}
        elif key == "items":
            value = _lean(value, defs)
        out[key] = value
    return out


# What a client assumes of a hint that is missing, by the protocol; every client pays for those that are there.
_ASSUMED = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}


def annotations(effect: Effect, *, repeat_safe: bool) -> dict[str, bool]:
    """The hints of a tool; of those for tools that change something, the ones that nobody would assume."""
    if effect == "read":
        return {"readOnlyHint": True}
    hints = {
        "readOnlyHint": False,
        "destructiveHint": effect in ("act", "commit"),
        "idempotentHint": repeat_safe,
        "openWorldHint": effect in ("navigate", "act", "commit"),
    }
    return {name: value for name, value in hints.items() if name == "readOnlyHint" or value != _ASSUMED[name]}


def entry(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.canonical,
        "title": spec.title,
        "description": spec.description,
        "effect": spec.effect,
        "bundles": sorted(spec.bundles),
        "inputSchema": listed_schema(spec),
        "outputSchema": open_schema(spec),
        "annotations": annotations(spec.effect, repeat_safe=spec.repeat_safe),
    }


def open_schema(spec: ToolSpec) -> dict[str, Any]:
    """What an answer may hold, left open: advisory blocks come and go."""
    lean = lean_schema(spec.result.model_json_schema(by_alias=True, mode="serialization"))
    lean["required"] = ["ok"]
    return _without_nested_required(lean)


def _without_nested_required(node: dict[str, Any], *, root: bool = True) -> dict[str, Any]:
    return {
        key: (
            {name: _without_nested_required(entry, root=False) for name, entry in value.items()}
            if key == "properties"
            else _without_nested_required(value, root=False)
            if key == "items"
            else [_without_nested_required(arm, root=False) for arm in value]
            if key == "anyOf"
            else value
        )
        for key, value in node.items()
        if root or key not in ("required", "type", "enum")
    }


def manifest_text(catalogue: Catalogue) -> str:
    tools = [entry(spec) for spec in catalogue]
    return json.dumps({"version": MANIFEST_VERSION, "tools": tools}, ensure_ascii=False, indent=1) + "\n"


def _bounds(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " \\| ".join(str(choice) for choice in field["enum"])
    low = field.get("minimum", field.get("minLength", field.get("minItems")))
    high = field.get("maximum", field.get("maxLength", field.get("maxItems")))
    unit = " characters" if "maxLength" in field else " entries" if "maxItems" in field else ""
    if low is None and high is None:
        return f"`{field['pattern']}`".replace("|", "\\|") if "pattern" in field else ""
    return f"{'' if low is None else low}–{'' if high is None else high}{unit}"


def _argument_row(name: str, field: Mapping[str, Any], defs: Mapping[str, Any], *, required: bool) -> str:
    arms = [arm for arm in field.get("anyOf", [field]) if arm.get("type") != "null"]
    arm = {**arms[0], **{key: value for key, value in field.items() if key != "anyOf"}}
    if "$ref" in arm:
        arm = {**defs[arm["$ref"].rsplit("/", 1)[1]], **arm}
    default = "required" if required else json.dumps(arm.get("default"), ensure_ascii=False)
    kind = " \\| ".join(str(one.get("type", "object")) for one in arms)
    return f"| `{name}` | {kind} | {_bounds(arm)} | {default} | {arm.get('description', '')} |"


def reference_text(catalogue: Catalogue) -> str:
    """`docs/tools.md`: every argument with its bounds and default."""
    lines = ["# Tools", "", "Generated by `make docs`; do not edit. `nova.call` reaches every tool listed here.", ""]
    lines += ["| bundle | what it is for | tools |", "|---|---|---|"]
    for name, text in BUNDLES.items():
        lines.append(f"| `{name}` | {text} | {' '.join(spec.name for spec in catalogue.bundle(name))} |")
    for spec in catalogue:
        schema = spec.params.model_json_schema(by_alias=True)
        lines += ["", f"## {spec.canonical}", "", f"{spec.title} · effect `{spec.effect}`", "", spec.description, ""]
        lines.append("Gates: " + ", ".join(f"`{gate}`" for gate in spec.gates) + ".")
        properties, defs = schema.get("properties", {}), schema.get("$defs", {})
        if properties:
            lines += ["", "| argument | type | allowed | default | meaning |", "|---|---|---|---|---|"]
            wanted = schema.get("required", [])
            lines += [_argument_row(name, field, defs, required=name in wanted) for name, field in properties.items()]
        # The status of what a tool is about may stand in the place of the call's own.
        names = dict.fromkeys(entry.serialization_alias or name for name, entry in spec.result.model_fields.items())
        lines += ["", "Answer: " + ", ".join(f"`{name}`" for name in names) + "."]
    return "\n".join(lines) + "\n"


def reasons_text() -> str:
    """`docs/reasons.md`: every reason of a failure, by family."""
    lines = [
        "# Reasons",
        "",
        "Generated by `make docs`; do not edit. What a failed call answers in `reasonCode`, by family; `errorCode`",
    ]
    lines += ["is the family's number. Where a call knows more, its `message` and `hint` say so instead.", ""]
    families: tuple[type[NovaError], ...] = (*FAMILIES, Killed)
    for family in families:
        about = (family.__doc__ or "").splitlines()[0]
        lines += [f"## {family.__name__} · {family.error_code}", "", f"{about} Status `{family.status}`.", ""]
        lines += ["| reason | what happened | what to do |", "|---|---|---|"]
        lines += [f"| `{code}` | {reason.message} | {reason.hint} |" for code, reason in sorted(family.reasons.items())]
        lines.append("")
    return "\n".join(lines)
