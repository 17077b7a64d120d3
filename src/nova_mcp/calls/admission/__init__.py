"""Admission: what gates ask of a call, and the gates that answer."""

__all__ = ["admission", "gates"]
