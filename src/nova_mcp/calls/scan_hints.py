"""The recommendation of a scan in the answer of a call that read a page without covering it."""

from collections.abc import Sequence
from typing import Final

from nova_mcp.calls.model import Answer
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.values import Json
from nova_mcp.evidence.page_sights import ScanHint
from nova_mcp.settings import ToolNames
from nova_mcp.tools.names import published_name

BLOCK: Final = "taskHints"


def with_hints(answer: Answer, hints: Sequence[ScanHint], spelling: ToolNames, connection: AgentConnection) -> Answer:
    """The answer with the scan that would cover the page it is about; one at most, once per connection and run."""
    for hint in hints:
        topic = "coverage scan", hint.instance_id
        if connection.delivered(topic, otherwise=False):
            continue
        connection.deliver(topic)
        told: Json = {"instanceId": hint.instance_id, "unitKey": hint.unit_key, "scanId": hint.scan_id}
        tool = published_name("nova.coverage_scan", spelling)
        line = f"task: run {hint.instance_id} still lacks {hint.unit_key}; cover it with {tool} scanId={hint.scan_id}"
        return answer.with_block(BLOCK, {"coverageScanRecommended": told}, line)
    return answer
