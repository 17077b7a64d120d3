"""The private channel to a page's isolated world and its frames."""
