"""`python -m bench [name] [--quick|--long] [--trials=…]`: run one measurement, or all of them in their short form."""

import importlib
import sys

NAMES = (
    "pipeline",
    "kill",
    "truth",
    "duplicates",
    "verdicts",
    "miniwob",
    "django_admin",
    "consent",
    "browser",
    "names",
    "labels",
    "facts",
    "journal",
    "disk",
    "repair",
    "promotion",
    "knowledge",
    "repeat_visits",
    "poisoning",
    "tasks",
)
# Parts of others that can also be asked for alone.
PARTS = ("tasks_match", "tasks_growth")


def main() -> int:
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")] or list(NAMES)
    if unknown := [name for name in wanted if name not in (*NAMES, *PARTS)]:
        print(f"unknown benchmark {', '.join(unknown)}; there are: {', '.join((*NAMES, *PARTS))}", file=sys.stderr)
        return 2
    failed = 0
    for name in wanted:
        failed += importlib.import_module(f"bench.{name}").main(long="--long" in sys.argv)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
