"""Whether a record that was read back holds the kinds of values that Nova writes; pure."""

from nova_mcp.evidence.model import CallRecord


def sound(record: CallRecord) -> CallRecord:
    """JSON of the right shape may hold anything, and whoever shows or counts records relies on their types."""
    caller, outcome, touched = record.caller, record.outcome, record.touched
    texts: list[object] = [record.call_id, record.kind, record.tool_name, record.effect, outcome.kind, *touched.flags]
    texts += [caller.principal, caller.agent_id, caller.server_id]
    maybe: list[object] = [record.via, record.task_id, record.instance_id, record.closes]
    maybe += [outcome.reason_code, outcome.gate_id, outcome.verification]
    maybe += [touched.selector, touched.selector_hash, touched.fingerprint_id]
    for page in (record.before, record.after):
        maybe += [page.target_id, page.sandbox_id, page.url, page.route_key]
    numbers: list[object] = [outcome.error_code, record.before.page_epoch, record.after.page_epoch]
    as_written = (
        all(isinstance(value, str) for value in texts)
        and all(value is None or isinstance(value, str) for value in maybe)
        and all(value is None or isinstance(value, int) for value in numbers)
        and isinstance(record.started_at_ms, int)
        and isinstance(record.duration_ms, int)
        and isinstance(outcome.action_dispatched, bool | None)
    )
    if not as_written:
        raise ValueError("not a ledger body: a field is of another kind than Nova writes")
    return record
