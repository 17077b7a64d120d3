"""Tools that read, write and apply knowledge of sites."""

__all__ = ["pack", "params", "result_parts", "scope_argument", "upsert", "write_context"]
