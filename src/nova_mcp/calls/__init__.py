"""The life of one tool call, from arrival to answer."""

__all__ = ["admission", "answer_redaction", "endings", "model", "pipeline", "running_calls", "stored_resources"]
