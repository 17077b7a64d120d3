"""Transition contracts: their language, templates and evaluation."""

__all__ = ["codec", "evaluate", "expect", "fact_keys", "freshness", "templates", "text"]
