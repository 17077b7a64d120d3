"""Tools for task profiles, task runs and coverage."""

__all__ = ["run_parts"]
