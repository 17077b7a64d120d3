"""The stages of a call: what stands between its arrival and its tool, each with one protocol."""

__all__ = ["asides", "gate_stages", "loop_detection", "recording", "stage", "targets"]
