"""ALP, the agent learning pipeline: decides whether evidence is strong enough to become guidance."""
