"""Semantic prompts: questions that only an agent can answer, and the answers."""
