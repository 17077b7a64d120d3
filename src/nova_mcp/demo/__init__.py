"""The practice site and the scripted agent behind `nova demo`."""

__all__ = ["playing", "quick", "serving", "stage", "tally"]
