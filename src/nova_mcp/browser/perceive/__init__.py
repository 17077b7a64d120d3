"""Perception: scanning a page and describing it within a token budget."""
