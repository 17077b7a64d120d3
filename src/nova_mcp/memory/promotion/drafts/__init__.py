"""Drafts: recurring patterns, their scores, and the candidates generated from them."""
