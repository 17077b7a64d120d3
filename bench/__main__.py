"""`python -m bench [name] [--quick|--long] [--trials=…]`: run one measurement, or all of them in their short form.

`python -m bench report` runs them one by one, keeps what they found and writes docs/report.md.
"""

import importlib
import sys

from bench.plan import NAMES, PARTS
from bench.results import Ended
from bench.tables import keep


def main() -> int:
    if sys.argv[1:2] == ["report"]:
        return int(importlib.import_module("bench.report").main(sys.argv[2:]))
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")] or list(NAMES)
    if unknown := [name for name in wanted if name not in (*NAMES, *PARTS)]:
        known = ", ".join((*NAMES, *PARTS, "report"))
        print(f"unknown benchmark {', '.join(unknown)}; there are: {known}", file=sys.stderr)
        return 2
    failed = 0
    for name in wanted:
        failed += importlib.import_module(f"bench.{name}").main(long="--long" in sys.argv)
    keep(Ended(code=1 if failed else 0))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
