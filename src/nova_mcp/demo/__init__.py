"""The practice site and the scripted agent behind `nova demo`."""
