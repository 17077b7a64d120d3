"""Sandboxes and the browser state that is stored between servers."""

__all__ = ["manual_login", "sandbox", "sandbox_removal", "sandbox_traits", "sandboxes", "state_files"]
