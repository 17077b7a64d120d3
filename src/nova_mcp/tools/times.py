"""Times as answers carry them: UTC, ISO 8601, milliseconds."""

from datetime import UTC, datetime


def utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
