"""What agents can call, one file per family."""

PREFIX = "nova."
MANIFEST_VERSION = 1
