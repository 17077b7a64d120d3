"""Instructions for agents, and Learn Mode."""
