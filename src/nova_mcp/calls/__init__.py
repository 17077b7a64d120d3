"""The life of one tool call, from arrival to answer."""
