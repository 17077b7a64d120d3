"""The one table from what was dispatched, seen and proven to what an answer says and learning keeps."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from nova_mcp.errors import RetryAdvice
from nova_mcp.evidence.model import LearningLabel

Dispatch = Literal["not_dispatched", "dispatched", "assumed"]
EffectSeen = Literal["strong", "weak", "none", "unknown", "pending", "error_signal"]
Verdict = Literal[
    "none",
    "readback_match",
    "readback_differs",
    "verified_success",
    "verified_fail",
    "indeterminate",
    "likely",
    "skipped",
]
OutcomeStatus = Literal["ok", "partial", "failed", "blocked"]
VerifyState = Literal["verified", "likely", "uncertain", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the answer claims.

    `reason_code` is None when the outcome is ok, and also where only the caller knows the cause: why nothing
    was dispatched, which read-back differed, which kind of indeterminate it was.
    """

    status: OutcomeStatus
    verify_state: VerifyState
    retry_advice: RetryAdvice
    learning_label: LearningLabel
    reason_code: str | None = None

    @property
    def retryable(self) -> bool:
        return self.status != "ok" and self.retry_advice == "safe_to_retry"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; an empty set stands for every value, the first matching line decides."""

    outcome: Outcome
    dispatch: frozenset[Dispatch] = frozenset()
    effect: frozenset[EffectSeen] = frozenset()
    verdict: frozenset[Verdict] = frozenset()
    # The advice when repeating is harmless; None where a contract's verdict overrules that.
    repeat_advice: RetryAdvice | None = None

    def covers(self, dispatch: Dispatch, effect: EffectSeen, verdict: Verdict) -> bool:
        return (
            (not self.dispatch or dispatch in self.dispatch)
            and (not self.effect or effect in self.effect)
            and (not self.verdict or verdict in self.verdict)
        )


_NOT: Final[frozenset[Dispatch]] = frozenset({"not_dispatched"})
_PROVEN: Final[frozenset[Dispatch]] = frozenset({"dispatched"})
# `skipped` belongs to calls that never dispatched; after a dispatch it proves as little as no verdict.
_UNJUDGED: Final[frozenset[Verdict]] = frozenset({"none", "skipped"})


def _verdicts(*verdicts: Verdict) -> frozenset[Verdict]:
    return frozenset(verdicts)


def _effects(*effects: EffectSeen) -> frozenset[EffectSeen]:
    return frozenset(effects)


def _unsure(reason_code: str) -> Outcome:
    return Outcome("partial", "uncertain", "check_postcondition_first", "sighting", reason_code)


TABLE: Final[tuple[Row, ...]] = (
    # Nothing reached the page: no verdict can turn that into success, and the page taught nothing.
    Row(Outcome("blocked", "failed", "safe_to_retry", "none"), _NOT, verdict=_verdicts("skipped")),
    Row(Outcome("failed", "failed", "safe_to_retry", "none"), _NOT),
    # A contract's verdict outranks whatever else was seen.
    Row(Outcome("ok", "verified", "do_not_retry", "success"), verdict=_verdicts("verified_success")),
    # Only a press that provably arrived speaks against the control it was aimed at.
    Row(
        Outcome("failed", "failed", "do_not_retry", "failure", "guarded_commit.postcondition_failed"),
        _PROVEN,
        verdict=_verdicts("verified_fail"),
    ),
    Row(
        Outcome("failed", "failed", "do_not_retry", "sighting", "guarded_commit.postcondition_failed"),
        verdict=_verdicts("verified_fail"),
    ),
    Row(
        Outcome("partial", "uncertain", "check_postcondition_first", "sighting"),
        verdict=_verdicts("indeterminate"),
        repeat_advice="safe_to_retry",
    ),
    # Undecided, and what little was seen speaks for it: no proof, and not to be repeated without a look.
    Row(
        Outcome("partial", "likely", "check_postcondition_first", "sighting"),
        verdict=_verdicts("likely"),
        repeat_advice="safe_to_retry",
    ),
    # Reading the state back is proof by itself.
    Row(
        Outcome("ok", "verified", "do_not_retry", "success"),
        verdict=_verdicts("readback_match"),
        repeat_advice="safe_to_retry",
    ),
    Row(
        Outcome("partial", "failed", "check_postcondition_first", "failure"),
        _PROVEN,
        verdict=_verdicts("readback_differs"),
        repeat_advice="safe_to_retry",
    ),
    Row(
        Outcome("partial", "failed", "check_postcondition_first", "sighting"),
        verdict=_verdicts("readback_differs"),
        repeat_advice="safe_to_retry",
    ),
    # Without a verdict the effect alone speaks, and it never proves.
    Row(
        Outcome("ok", "likely", "check_postcondition_first", "sighting"),
        effect=_effects("strong"),
        verdict=_UNJUDGED,
        repeat_advice="safe_to_retry",
    ),
    Row(
        _unsure("action.request_pending"),
        effect=_effects("pending"),
        verdict=_UNJUDGED,
        repeat_advice="safe_to_retry",
    ),
    Row(
        _unsure("action.error_signal"),
        effect=_effects("error_signal"),
        verdict=_UNJUDGED,
        repeat_advice="safe_to_retry",
    ),
    Row(
        _unsure("action.no_effect_observed"),
        effect=_effects("none", "weak", "unknown"),
        verdict=_UNJUDGED,
        repeat_advice="safe_to_retry",
    ),
)


def combinations() -> Iterator[tuple[Dispatch, EffectSeen, Verdict]]:
    """Every input the table has to answer."""
    for dispatch in get_args(Dispatch):
        for effect in get_args(EffectSeen):
            for verdict in get_args(Verdict):
                yield dispatch, effect, verdict


def judge_outcome(dispatch: Dispatch, effect: EffectSeen, verdict: Verdict, repeat_safe: bool = False) -> Outcome:
    """The outcome of one action; `repeat_safe` says that doing it again changes nothing more."""
    for row in TABLE:
        if row.covers(dispatch, effect, verdict):
            if repeat_safe and row.repeat_advice is not None:
                return replace(row.outcome, retry_advice=row.repeat_advice)
            return row.outcome
    raise AssertionError(f"no row for {dispatch}, {effect}, {verdict}")


def already_set(repeat_safe: bool = True) -> Outcome:
    """The page already shows what was asked for, so nothing was dispatched and nothing was learned."""
    return Outcome("ok", "verified", "safe_to_retry" if repeat_safe else "do_not_retry", "none")


def already_done() -> Outcome:
    """An earlier, undecided dispatch turned out to have succeeded; repeating it would do it twice."""
    return Outcome("ok", "verified", "do_not_retry", "none", "guarded_commit.already_done")
