"""Answers as JSON can carry them: pages hold broken characters and numbers that no message may contain."""

import math

from nova_mcp.core.values import Json


def clean_text(text: str) -> str:
    """Halves of characters that lost their other half become the replacement character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: Json) -> Json:
    """The same value with clean strings, and nothing where a number was not finite."""
    match value:
        case str():
            return clean_text(value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {clean_text(key): clean_json(part) for key, part in value.items()}
        case list():
            return [clean_json(part) for part in value]
        case _:
            return value
