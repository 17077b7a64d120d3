"""Commands that start, watch, stop and control servers."""
