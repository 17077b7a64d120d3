"""Task runs: creation, progress, verification and completion."""
