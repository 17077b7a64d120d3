"""Writing entries: what may be stored, how a write is merged, and its transaction."""
