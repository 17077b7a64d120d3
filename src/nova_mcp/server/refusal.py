"""A failure that the server itself has to answer, in the shape every failed call has."""

import json

from nova_mcp.errors import NovaError
from nova_mcp.observation.model import Json
from nova_mcp.pipeline.model import Answer


def refusal(error: NovaError) -> Answer:
    structured: dict[str, Json] = {
        "ok": False,
        "status": error.status,
        "errorCode": error.error_code,
        "reasonCode": error.reason_code,
        "message": error.message,
        "hint": error.hint,
        "stage": error.stage,
        "retryable": error.retryable,
        "retryAdvice": error.retry_advice,
    }
    if error.retry_after_ms is not None:
        structured["retryAfterMs"] = error.retry_after_ms
    return Answer(structured, json.dumps(structured, ensure_ascii=False, separators=(",", ":")), is_error=True)
