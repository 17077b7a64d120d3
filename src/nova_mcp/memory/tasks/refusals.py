"""The word no about tasks that is an ordinary answer; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nova_mcp.core.values import Json
from nova_mcp.evidence.model import CallRecord


@dataclass(frozen=True, slots=True)
class Refused:
    """The call was fine and the store said no: an ordinary answer with `ok: false`. Nothing was written."""

    reason_code: str
    details: Mapping[str, Json] = field(default_factory=dict)

    def on_record(self, record: CallRecord) -> CallRecord:
        return record.with_reason(self.reason_code)
