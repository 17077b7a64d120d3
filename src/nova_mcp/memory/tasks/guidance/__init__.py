"""Guidance of task profiles: counted, reviewed and promoted."""
