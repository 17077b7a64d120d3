"""Secrets: values a person trusts Nova with, typed only where their hosts allow and shown nowhere."""

__all__ = ["model", "redactor", "rules", "store"]
