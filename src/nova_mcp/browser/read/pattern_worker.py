"""Tries one regular expression on texts in a process of its own, where it can be ended at any moment.

Runs as a script without the package around it. Reads one JSON line, says that it has begun, answers with another.
"""

import json
import re
import signal
import sys


def utf16(text: str, place: int) -> int:
    """A place in a text as the page counts it."""
    return len(text[:place].encode("utf-16-le", "surrogatepass")) // 2


def hits(pattern: "re.Pattern[str]", texts: list[str], most: int, *, empty_too: bool = False) -> list[list[int]]:
    """Where the pattern matches something: text, start and end."""
    found: list[list[int]] = []
    for number, text in enumerate(texts):
        narrow = text.isascii() or max(text) <= "\uffff"
        for match in pattern.finditer(text):
            start, end = match.span()
            if start == end and not empty_too:
                continue
            found.append([number, start, end] if narrow else [number, utf16(text, start), utf16(text, end)])
            if len(found) >= most:
                return found
    return found


def limit_cpu(seconds: int) -> None:
    """Should nobody be left to end this process, it ends by itself."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def limit_matching(seconds: "float | None") -> None:
    """The signal ends the process, which is the answer; systems without it have only the reader's patience."""
    if seconds is not None and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def main() -> None:
    limit_cpu(5)
    order = json.loads(sys.stdin.buffer.readline())
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    try:
        pattern = re.compile(order["pattern"], re.MULTILINE | (0 if order["caseSensitive"] else re.IGNORECASE))
        limit_matching(order["cpuSeconds"])
        found = hits(pattern, order["texts"], order["most"], empty_too=order["emptyToo"])
        answer: dict[str, object] = {"hits": found}
    except (re.error, RecursionError, OverflowError) as error:
        answer = {"error": str(error)[:200]}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
