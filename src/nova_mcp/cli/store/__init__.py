"""Commands that read or maintain the store."""
