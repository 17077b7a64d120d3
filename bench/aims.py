"""What is promised of Nova, each with the benchmarks that measure it and the README table it stands in."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Group = Literal["truth", "speed", "tokens", "learning", "tasks", "scale"]
GROUPS: Final[tuple[Group, ...]] = get_args(Group)


@dataclass(frozen=True, slots=True)
class Aim:
    """`sections` are the benchmarks that owe a finding; without all of them the aim is measured in part only."""

    key: str
    name: str
    promise: str
    sections: tuple[str, ...]
    group: Group


AIMS: Final = (
    Aim(
        "T1",
        "false success",
        "`verified` on a real failure ≤ 0.5 %, upper bound stated",
        ("truth", "miniwob", "django_admin"),
        "truth",
    ),
    Aim(
        "T2",
        "false alarm",
        "failed on a real success ≤ 2 %; unclear counted apart, ≤ 5 %",
        ("truth", "miniwob", "django_admin"),
        "truth",
    ),
    Aim("T3", "duplicate submits", "0 doubled in ≥ 10,000 trials; lost ≤ 1 %", ("duplicates",), "truth"),
    Aim(
        "T4",
        "promotion precision",
        "active and right ≥ 99 %, recall ≥ 60 %, at 20 % raw noise where uses carry contracts; told without them",
        ("promotion",),
        "learning",
    ),
    Aim("T5", "locator repair", "right ≥ 92 %, wrong ≤ 1 %, on real pairs of versions", ("repair",), "learning"),
    Aim("T6", "supersedence", "the right value 100 %; no other slot touched", ("facts",), "truth"),
    Aim("T7", "premature completion", "0 accepted too early; false refusals ≤ 1 %", ("tasks",), "tasks"),
    Aim("T8", "poisoning", "nothing active from a single source", ("poisoning", "promotion"), "learning"),
    Aim(
        "T9",
        "consent",
        "dismissals ≥ 99 %; 0 false “done”; 0 accept clicks",
        ("consent",),
        "truth",
    ),
    Aim("S1", "overhead of the pipeline", "p50 ≤ 3 ms over the bare SDK", ("pipeline",), "speed"),
    Aim("S2", "beside other browser servers", "faster on every row; a look ≤ 0.3 ×", ("browser",), "speed"),
    Aim(
        "S3",
        "tokens of perception",
        "≤ 0.25 × on large pages, less on every page; every control reachable",
        ("browser",),
        "tokens",
    ),
    Aim("S4", "default `tools/list`", "≤ 3,000 o200k tokens", ("pipeline",), "tokens"),
    Aim("S5", "verdict delay", "p95 ≤ 50 ms after the postcondition, hold taken off", ("verdicts",), "speed"),
    Aim(
        "S6",
        "write path",
        "≥ 1,000 calls/s, p99 ≤ 10 ms; four processes: p99 ≤ 20 ms, 0 errors",
        ("pipeline",),
        "speed",
    ),
    Aim(
        "S7",
        "flat as the store grows",
        "last ÷ first ≤ 2 up to 10⁶ observations, 10⁵ entries, 10⁵ profiles",
        ("journal", "knowledge", "tasks", "facts"),
        "scale",
    ),
    Aim("S8", "cold start", "bare SDK + 150 ms to the first `tools/list`", ("pipeline",), "speed"),
    Aim("S9", "calls saved on a repeat visit", "≥ 50 % fewer; 0 wrong replays", ("repeat_visits",), "learning"),
    Aim("R1", "`kill -9` at random points", "nothing answered is missing, doubled or left over", ("kill",), "truth"),
    Aim("R2", "memory and handles", "no growth over many calls", ("pipeline",), "scale"),
    Aim("D1", "the dashboard on a long ledger", "last ÷ first ≤ 2 up to 10⁶ calls", ("dashboard",), "scale"),
    Aim("P1", "names and roles", "every difference from Chromium's tree by a named rule", ("names",), "truth"),
    Aim("P2", "claims about pages", "recall and precision that each detector's set supports", ("labels",), "truth"),
    Aim("K1", "tasks recognised", "right among the accepted, told with its interval", ("tasks",), "tasks"),
)
