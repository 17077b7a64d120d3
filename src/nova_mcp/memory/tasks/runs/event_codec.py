"""Events of a run as canonical JSON and back, so that a run can be rebuilt from them; pure."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import canonical
from nova_mcp.memory.tasks.coverage.locators import Locator
from nova_mcp.memory.tasks.runs.rules import CheckMark, Delta, Finding, Move, Unit


def payload_hash(kind: str, payload: Mapping[str, Json]) -> str:
    """What tells a call that is sent again from another one under the same id."""
    return hashlib.sha256(canonical({"kind": kind, "payload": dict(payload)}).encode("ascii")).hexdigest()


def delta_json(delta: Delta) -> dict[str, Json]:
    """Only what changes is said."""
    body: dict[str, Json] = {
        "units": [_unit_json(one) for one in delta.units],
        "moves": [_kept({"unitKey": one.key, "status": one.status, "reason": one.reason}) for one in delta.moves],
        "findings": [
            _kept({"findingKey": one.key, "detail": one.detail, "unitKey": one.unit_key, "severity": one.severity})
            for one in delta.findings
        ],
        "checks": {key: _kept({"state": one.state, "note": one.note}) for key, one in delta.checks.items()},
        "resume": dict(delta.resume),
        "discovery": delta.discovery,
        "status": delta.status,
        "endedReason": delta.ended_reason,
        "note": delta.note,
    }
    return {key: value for key, value in body.items() if value not in (None, [], {})}


def _kept(body: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in body.items() if value is not None}


def _unit_json(unit: Unit) -> dict[str, Json]:
    place = unit.locator
    locator: Json = None if place is None else {"type": place.type, "value": place.value, "hash": place.hash}
    body: dict[str, Json] = {"unitKey": unit.key, "url": unit.url, "locator": locator}
    return _kept({**body, "label": unit.label or None, "late": unit.late or None})


def delta_of(text: str) -> Delta:
    data: dict[str, Any] = json.loads(text)
    return Delta(
        units=tuple(_unit_of(one) for one in data.get("units", ())),
        moves=tuple(Move(one["unitKey"], one["status"], one.get("reason")) for one in data.get("moves", ())),
        findings=tuple(
            Finding(one["findingKey"], one["detail"], one.get("unitKey"), one["severity"])
            for one in data.get("findings", ())
        ),
        checks={key: CheckMark(one["state"], one.get("note")) for key, one in data.get("checks", {}).items()},
        resume=data.get("resume", {}),
        discovery=data.get("discovery"),
        status=data.get("status"),
        ended_reason=data.get("endedReason"),
        note=data.get("note"),
    )


def _unit_of(data: Mapping[str, Any]) -> Unit:
    place = data.get("locator")
    locator = None if place is None else Locator(place["type"], place["value"], place["hash"])
    return Unit(data["unitKey"], data.get("label", ""), data.get("url"), locator, late=data.get("late", False))


def checks_text(checks: Mapping[str, CheckMark]) -> str:
    return canonical({key: _kept({"state": one.state, "note": one.note}) for key, one in checks.items()})


def checks_of(text: str) -> dict[str, CheckMark]:
    return {key: CheckMark(one["state"], one.get("note")) for key, one in json.loads(text).items()}
