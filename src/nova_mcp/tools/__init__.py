"""What agents can call, one file per family."""

PREFIX = "nova."
