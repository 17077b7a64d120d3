"""Drafts: recurring patterns, their scores, and the candidates generated from them."""

__all__ = ["cluster_store", "draft_store", "earlier_evidence", "generator", "jobs", "model", "track_store"]
