"""Sandboxes and the browser state that is stored between servers."""
