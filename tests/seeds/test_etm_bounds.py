"""Every bound of task memory, however deep it lies: taken at the edge and refused one past it, by a real client."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from etm_kit import ad_hoc, condition
from loop_kit import Server

from nova_mcp.tools.catalogue import load_catalogue

CATALOGUE = load_catalogue()
RUN, EVENT = "0" * 32, {"expectedInstanceRev": 0, "clientEventId": "e"}
SCOPE: dict[str, Any] = {
    "route": "/",
    "pageType": "list",
    "locale": "de",
    "languages": ["de"],
    "sections": ["main"],
    "authState": "unknown",
    "tags": ["a"],
    "entities": {},
    "variables": {},
}
CONTENT: dict[str, Any] = {
    "domain": "shop.example",
    "platform": "acme",
    "taskKind": "legal",
    "completionCondition": condition(evidencePolicy={"mode": "none", "maxGapPercent": 0, "treatUnknownAs": "gap"}),
    "stableGuidance": [{"guidanceId": "g", "kind": "style", "text": "Short."}],
    "mandatoryChecks": [{"checkId": "a", "description": "Done", "required": True}],
    "knownExceptions": [{"text": "None"}],
    "verification": {
        "steps": [
            {
                "stepId": "s",
                "tool": "nova.tabs",
                "args": {},
                "description": "Look",
                "gate": "fast",
                "required": True,
                "assertionType": "has_results",
                "targetRef": "tabs",
                "expectedValue": "tab",
                "pageUrl": "http://shop.example/",
            }
        ]
    },
}
REPORT = [{"stepId": "s", "state": "passed", "toolResult": 1, "detail": "seen"}]
# A call of every tool with all its arguments; one that is missing here fails the first test below.
WHOLE: dict[str, dict[str, Any]] = {
    "task_match": {
        "taskDescription": "audit the shop",
        "taskType": "audit",
        "domain": "shop.example",
        "platform": "acme",
        "targetUrl": "http://shop.example/",
        "currentScope": {},
    },
    "task_search": {
        "query": "audit",
        "domain": "shop.example",
        "platform": "acme",
        "taskType": "audit",
        "limit": 10,
    },
    "task_profiles": {
        "taskType": "audit",
        "domain": "shop.example",
        "platform": "acme",
        "includeArchived": False,
        "limit": 100,
        "offset": 0,
    },
    "task_profile_get": {"profileId": "abc"},
    "task_profile_upsert": {
        "profileId": "bounds",
        "expectedContentRev": 7,
        "taskType": "audit",
        "displayName": "Audit",
        "goal": "Look",
        "confidence": 0.5,
        "archived": False,
        "sourceInstanceId": RUN,
        **CONTENT,
    },
    "task_instance_create": {
        "profileId": "abc",
        "adHocContext": ad_hoc(**CONTENT),
        "targetUrl": "http://shop.example/",
        "clientEventId": "e",
        "currentScope": SCOPE,
        "overrides": {
            "currentScopePatch": deepcopy(SCOPE),
            "variables": {},
            **{
                name: {"include": ["one"], "exclude": ["two"]}
                for name in ("stableGuidance", "knownExceptions", "tags", "sections", "languages")
            },
        },
        "declaredTaskKind": "legal",
        "unitSource": {
            "kind": "explicit",
            "explicitUrls": ["/a"],
            "scopeDomain": "shop.example",
            "freezeAfterPopulate": False,
        },
    },
    "task_instance_get": {
        "instanceId": RUN,
        "unitFilter": "discovered",
        "unitLimit": 20,
        "unitCursor": "u1",
        "eventLimit": 0,
    },
    "task_instance_progress": {
        "instanceId": RUN,
        **EVENT,
        "discoveredUnits": [{"unitKey": "u", "label": "U", "locator": {"type": "selector", "value": "#a"}}],
        "unitUpdates": [{"unitKey": "u", "status": "excluded", "reason": "not ours"}],
        "findings": [{"findingKey": "f", "detail": "broken", "unitKey": "u", "severity": "info"}],
        "mandatoryCheckUpdates": [{"checkId": "a", "state": "waived", "note": "not needed"}],
        "resumeStateDelta": {"cursor": "c", "lastProcessedUrl": "/a", "lastAction": "read", "checkpoint": {}},
        "setDiscoveryState": "frozen",
        "note": "so far",
    },
    "task_instance_verify": {"instanceId": RUN, "evidenceReport": REPORT},
    "task_instance_complete": {"instanceId": RUN, **EVENT, "note": "done", "evidenceReport": REPORT},
    "task_instance_abort": {"instanceId": RUN, **EVENT, "reason": "gone", "outcome": "failed"},
    "task_guidance_log_add": {
        "guidanceKind": "style",
        "sourceKind": "user",
        "payload": {
            "text": "Short.",
            "appliesTo": "texts",
            "rationale": "asked for",
            "url": "/a",
            "tags": ["a"],
            "evidenceRefs": ["b"],
        },
        "profileId": "abc",
        "instanceId": RUN,
    },
    "task_guidance_logs": {
        "profileId": "abc",
        "instanceId": RUN,
        "guidanceKind": "style",
        "status": "logged",
        "limit": 50,
    },
    "task_promotion_candidates": {"profileId": "abc", "threshold": 3},
    "task_promote_guidance": {"guidanceLogId": RUN, "profileId": "abc", "decision": "reject", "reason": "not ours"},
    "coverage_scan": {
        "scanId": "nova_full_page_text_v1",
        "targetId": "tab_none",
        "maxTextChars": 8000,
        "scopeOptions": {
            "includeShadowDom": True,
            "includeIframes": True,
            "waitForHydration": True,
            "hydrationTimeoutMs": 5000,
        },
    },
}
# Given instead of another argument, refused by a name of their own, or no task memory's matter.
LEFT_OUT = {
    "agentId",
    *("discoveredUnits.0.url", "unitUpdates.0.url", "findings.0.url", "completionCondition.stopValue"),
    "adHocContext.completionCondition.stopValue",
    *(
        f"overrides.{place}{name}"
        for place in ("", "currentScopePatch.")
        for name in ("mandatoryChecks", "completionCondition", "verification", "checks")
    ),
}
# What the contract gives for numbers: the least, the most, and what holds where nothing is sent.
NUMBERS = {
    "task_search limit": (1, 50, 10),
    "task_profiles limit": (1, 500, 100),
    "task_profile_upsert confidence": (0.10, 0.99, None),
    "task_instance_get unitLimit": (0, 200, 20),
    "task_instance_get eventLimit": (0, 100, 0),
    "task_guidance_logs limit": (1, 200, 50),
    "task_promotion_candidates threshold": (1, 100, 3),
    "coverage_scan maxTextChars": (0, 200_000, 8_000),
    "coverage_scan scopeOptions.hydrationTimeoutMs": (0, 30_000, 5_000),
    "task_profile_upsert completionCondition.evidencePolicy.maxGapPercent": (0, 100, 0),
}
# And for texts: how short and how long.
TEXTS = {
    "task_match taskDescription": (3, 2000),
    "task_match taskType": (1, 200),
    "task_search query": (1, 500),
    "task_profile_upsert taskType": (1, 64),
    "task_profile_upsert displayName": (1, 120),
    "task_profile_upsert goal": (1, 2000),
    "task_profile_upsert stableGuidance.0.text": (1, 500),
    "task_profile_upsert mandatoryChecks.0.description": (1, 500),
    "task_profile_upsert knownExceptions.0.text": (1, 500),
    "task_instance_create clientEventId": (1, 128),
    "task_instance_progress clientEventId": (1, 128),
    "task_instance_progress discoveredUnits.0.unitKey": (1, 256),
    "task_instance_progress discoveredUnits.0.label": (0, 200),
    "task_instance_progress unitUpdates.0.reason": (3, 500),
    "task_instance_progress findings.0.findingKey": (1, 128),
    "task_instance_progress findings.0.detail": (1, 2000),
    "task_instance_progress resumeStateDelta.lastAction": (0, 500),
    "task_instance_progress note": (1, 2000),
    "task_instance_complete note": (1, 2000),
    "task_instance_abort reason": (3, 500),
    "task_guidance_log_add payload.text": (3, 500),
    "task_promote_guidance reason": (3, 500),
}
LISTED = {
    "task_instance_create unitSource.explicitUrls": (1, 1000),
    "task_instance_verify evidenceReport": (0, 20),
    "task_instance_complete evidenceReport": (0, 20),
    "task_guidance_log_add payload.tags": (0, 10),
    "task_guidance_log_add payload.evidenceRefs": (0, 10),
}


def arm_of(field: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """What a field may hold besides nothing, with everything that is said beside it."""
    arms = [one for one in field.get("anyOf", [field]) if one.get("type") != "null"]
    arm = defs[arms[0]["$ref"].rsplit("/", 1)[1]] if "$ref" in arms[0] else arms[0]
    return {**arm, "default": field.get("default")}


def places(arm: dict[str, Any], defs: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything that can be sent, by its dotted path; of a list its first entry."""
    if path:
        yield path, arm
    inner = dict(arm.get("properties", {}))
    if isinstance(arm.get("items"), dict) and arm["items"]:
        inner = {"0": arm["items"]}
    for name, field in inner.items():
        here = f"{path}.{name}" if path else name
        if here not in LEFT_OUT:
            yield from places(arm_of(field, defs), defs, here)


def places_of(tool: str) -> dict[str, dict[str, Any]]:
    schema = CATALOGUE.tools[tool].params.model_json_schema(by_alias=True)
    return dict(places(schema, schema.get("$defs", {})))


def holder(call: Any, path: str) -> tuple[Any, Any]:
    """What holds a place of a call, and under which name."""
    *way, last = path.split(".")
    for name in way:
        call = call[int(name) if isinstance(call, list) else name]
    return call, int(last) if isinstance(call, list) else last


def sent_with(tool: str, path: str, value: Any) -> dict[str, Any]:
    call = deepcopy(WHOLE[tool])
    held, name = holder(call, path)
    held[name] = value
    return call


def text_of(path: str, length: int) -> str:
    """Addresses have to be some."""
    return ("http://shop.example/" + "x" * length)[:length] if path.endswith("Url") and length > 20 else "x" * length


def entries(tool: str, path: str, count: int) -> list[Any]:
    """That many of what a list holds, each with an id of its own where it has one."""
    held, name = holder(WHOLE[tool], path)
    one = held[name][0]
    return [{**one, "stepId": f"s{number}"} if "stepId" in one else one for number in range(count)]


def values(tool: str, path: str, arm: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What lies on the edges of a place, and one past each."""
    if "enum" in arm:
        return list(arm["enum"]), ["not-one-of-these"]
    match arm.get("type"):
        case "integer":
            return _edges(arm, "minimum", "maximum", 1, lambda value: value)
        case "number":
            return _edges(arm, "minimum", "maximum", 0.01, lambda value: value)
        case "string" if "pattern" not in arm:
            return _edges(arm, "minLength", "maxLength", 1, lambda length: text_of(path, length))
        case "array":
            return _edges(arm, "minItems", "maxItems", 1, lambda count: entries(tool, path, count))
    return [], []


def _edges(
    arm: dict[str, Any], least: str, most: str, step: float, made: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    inside = [arm[name] for name in (least, most) if name in arm]
    outside = [arm[name] + by for name, by in ((least, -step), (most, step)) if name in arm]
    if least != "minimum":
        outside = [size for size in outside if size >= 0]
    return [made(one) for one in inside], [made(one) for one in outside]


@pytest.mark.parametrize("tool", sorted(WHOLE))
def test_every_argument_is_tried(tool: str) -> None:
    assert {name for name in CATALOGUE.tools if name.startswith("task_")} | {"coverage_scan"} == set(WHOLE)
    for path in places_of(tool):
        held, name = holder(WHOLE[tool], path)
        assert name in range(len(held)) if isinstance(held, list) else name in held, path


@pytest.mark.parametrize("tool", sorted(WHOLE))
async def test_bounds_hold_at_the_edge_and_one_past_it(server: Server, tool: str) -> None:
    for path, arm in places_of(tool).items():
        inside, outside = values(tool, path, arm)
        for value in inside:
            told = await server.call(tool, **sent_with(tool, path, value))
            assert told.get("reasonCode") != "invalid_params", (path, value, told)
        for value in outside:
            told = await server.call(tool, **sent_with(tool, path, value))
            assert (told["errorCode"], told["reasonCode"]) == (-32602, "invalid_params"), (path, told)
            assert path in told["message"], (path, told)


def test_bounds_and_defaults_are_those_of_the_contract() -> None:
    def arm(place: str) -> dict[str, Any]:
        tool, path = place.split(" ")
        return places_of(tool)[path]

    assert {key: (arm(key)["minimum"], arm(key)["maximum"], arm(key)["default"]) for key in NUMBERS} == NUMBERS
    assert {key: (arm(key)["minLength"], arm(key)["maxLength"]) for key in TEXTS} == TEXTS
    assert {key: (arm(key).get("minItems", 0), arm(key)["maxItems"]) for key in LISTED} == LISTED
