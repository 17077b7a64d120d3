"""Numbers and names given on the command line as `--name=…`."""

import sys


def number(name: str, default: int) -> int:
    given = [word.partition("=")[2] for word in sys.argv if word.startswith(f"--{name}=")]
    return int(given[-1]) if given else default


def chosen(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names given as `--name=one,two`; all known ones when nothing is given."""
    given = [word.partition("=")[2] for word in sys.argv if word.startswith(f"--{name}=")]
    wanted = tuple(given[-1].split(",")) if given else known
    if unknown := [one for one in wanted if one not in known]:
        raise SystemExit(f"--{name} knows {', '.join(known)}; not {', '.join(unknown)}")
    return wanted
