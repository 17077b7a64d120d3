"""What pages read from the store."""
