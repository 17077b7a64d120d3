"""How sure a share is: upper and lower bounds for a proportion seen in a sample."""

import math

Z_95 = 1.959963984540054


def wilson(hits: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """The Wilson score interval; a sample of nothing says nothing."""
    if not 0 <= hits <= trials:
        raise ValueError(f"{hits} of {trials} is no share")
    if trials == 0:
        return 0.0, 1.0
    share = hits / trials
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    middle = share + z * z / (2 * trials)
    scale = 1 + z * z / trials
    low = 0.0 if hits == 0 else max(0.0, (middle - spread) / scale)
    high = 1.0 if hits == trials else min(1.0, (middle + spread) / scale)
    return low, high


def _at_most(hits: int, trials: int, chance: float) -> float:
    """The probability of seeing at most so many hits."""
    if chance <= 0.0:
        return 1.0
    if chance >= 1.0:
        return 1.0 if hits >= trials else 0.0
    log_yes, log_no = math.log(chance), math.log1p(-chance)
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + k * log_yes
            + (trials - k) * log_no
        )
        for k in range(hits + 1)
    )


def exact_upper(hits: int, trials: int, confidence: float = 0.95) -> float:
    """The one-sided Clopper-Pearson bound: the true share is below it with this confidence."""
    if not 0 <= hits <= trials:
        raise ValueError(f"{hits} of {trials} is no share")
    if hits == trials:
        return 1.0
    low, high = hits / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(hits, trials, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def percent(hits: int, trials: int) -> str:
    return "-" if trials == 0 else f"{100 * hits / trials:.2f} %"


def upper_percent(hits: int, trials: int) -> str:
    return "-" if trials == 0 else f"{100 * exact_upper(hits, trials):.2f} %"
