"""Instructions for agents, and Learn Mode."""

__all__ = ["budget", "evm", "learn_mode", "learn_rules", "learn_store", "text"]
