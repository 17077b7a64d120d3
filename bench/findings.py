"""Findings in the shapes that recur: a share that may not be passed, a figure under a bound."""

from collections.abc import Sequence

from bench.bounds import exact_upper, upper_percent
from bench.results import Finding


def _bound(most: float) -> str:
    return "0" if most == 0 else f"≤ {100 * most:g} %"


def bad_share(aim: str, what: str, hits: int, trials: int, most: float) -> Finding:
    """Bad ones among so many. Where even none at all could hide more than the aim allows, the sample is too small."""
    said = f"{hits:,} of {trials:,} (upper bound {upper_percent(hits, trials)})" if trials else "nothing to count"
    met = hits <= most * trials if trials else None
    small = bool(trials) and 0 < most < exact_upper(hits, trials)
    return Finding(
        aim=aim,
        what=what,
        measured=said,
        bound=_bound(most),
        n=trials,
        met=met,
        smaller=f"a sample whose upper bound is {_bound(most)}" if small and met else "",
    )


def at_most(aim: str, what: str, value: float, most: float, n: int, unit: str = "ms") -> Finding:
    """A figure that may not be larger."""
    unit = f" {unit}" if unit else ""
    bound = f"≤ {most:,g}{unit}"
    return Finding(aim=aim, what=what, measured=f"{_figure(value)}{unit}", bound=bound, n=n, met=value <= most)


def at_least(aim: str, what: str, value: float, least: float, n: int, unit: str = "") -> Finding:
    """A figure that may not be smaller."""
    unit = f" {unit}" if unit else ""
    bound = f"≥ {least:,g}{unit}"
    return Finding(aim=aim, what=what, measured=f"{_figure(value)}{unit}", bound=bound, n=n, met=value >= least)


def flat(aim: str, what: str, medians: Sequence[float], sizes: Sequence[int], wanted: int, n: int) -> Finding:
    """A median that must not grow with what is stored: last ÷ first, and `wanted` the size the promise speaks of."""
    ratio = medians[-1] / medians[0]
    said = f"{medians[0]:.2f} → {medians[-1]:.2f} ms at {sizes[0]:,} → {sizes[-1]:,}, × {ratio:.2f}"
    smaller = f"{wanted:,}" if sizes[-1] < wanted else ""
    return Finding(aim=aim, what=what, measured=said, bound="× ≤ 2", n=n, met=ratio <= 2, smaller=smaller)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}"
