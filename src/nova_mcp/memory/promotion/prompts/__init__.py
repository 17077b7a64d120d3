"""Semantic prompts: questions that only an agent can answer, and the answers."""

__all__ = ["prompter", "rules", "store", "text"]
