"""Where a serving process writes its log: always standard error, never the wire."""

import logging
import sys

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(level: str) -> None:
    """Set up the log unless whoever embeds the server already did."""
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format=FORMAT)
