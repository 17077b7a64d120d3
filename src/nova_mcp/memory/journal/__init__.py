"""LCJ, the candidate journal: evidence that may become knowledge, and what is decided about it when work ends."""
