"""Numbers given on the command line as `--name=number`."""

import sys


def number(name: str, default: int) -> int:
    given = [word.partition("=")[2] for word in sys.argv if word.startswith(f"--{name}=")]
    return int(given[-1]) if given else default
