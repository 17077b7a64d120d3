"""Never twice by accident: what a commit that was asked for before may do now."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from nova_mcp.verification.model import Earlier, SetVerdict

RECENT_MS: Final = 10_000
# A server that died may have done it and not lived to say so, and an agent needs longer to come back.
RECENT_ELSEWHERE_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class Send:
    """Nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """First see on the page what became of the earlier one."""

    earlier: Earlier


@dataclass(frozen=True, slots=True)
class InFlight:
    """The earlier one is still under way."""

    earlier: Earlier


Why = Literal["verified_just_now", "not_observed_since", "not_named"]


@dataclass(frozen=True, slots=True)
class Suspect:
    """It may be the same commit a second time, so it is not sent.

    `verified_just_now` asks for an observation or another intent key, `not_observed_since` for an observation, and
    `not_named` for the earlier transition in retryOf.
    """

    earlier: Earlier
    why: Why


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """The earlier one, undecided until now, turns out to have succeeded; nothing is sent."""

    earlier: Earlier


@dataclass(frozen=True, slots=True)
class CloseAsFailedAndSend:
    """The page shows that the earlier one failed."""

    earlier: Earlier


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Nobody knows what became of the earlier one, but the agent looked and insists; `refuted` where it was taken for a
    success and the page now shows that it failed."""

    earlier: Earlier
    refuted: bool = False


Repeat: TypeAlias = Send | Recheck | Suspect | InFlight
Rechecked: TypeAlias = AlreadyDone | CloseAsFailedAndSend | SendAgain | Suspect


def observed_since(earlier: Earlier, observed_at_ms: int | None) -> bool:
    """An observation in the same millisecond may have come first, so it doesn't count."""
    return observed_at_ms is not None and observed_at_ms > earlier.completed_at_ms


def judge_repeat(earlier: Earlier | None, *, now_ms: int, observed_at_ms: int | None, retry_of: str | None) -> Repeat:
    """Whether a commit may be sent, given the last dispatch of the same identity."""
    if earlier is None:
        return Send()
    if earlier.state == "in_flight":
        return InFlight(earlier)
    if earlier.state == "indeterminate" or retry_of == earlier.transition_id:
        return Recheck(earlier)
    # A clock that went back makes the age negative; that counts as recent.
    recent = now_ms - earlier.completed_at_ms < (RECENT_ELSEWHERE_MS if earlier.elsewhere else RECENT_MS)
    if earlier.state == "verified_success" and recent and not observed_since(earlier, observed_at_ms):
        return Suspect(earlier, "verified_just_now")
    return Send()


def judge_recheck(
    earlier: Earlier,
    success: SetVerdict | None,
    forbidden: SetVerdict | None,
    *,
    observed_since: bool,
    retry_of: str | None,
) -> Rechecked:
    """What the earlier one's contract says on the page as it is now."""
    done, failed = success == "satisfied", forbidden == "satisfied"
    # Only an undecided commit may be answered with success unsent; a verified one that is asked for again is a repeat.
    if done and not failed and earlier.state == "indeterminate":
        return AlreadyDone(earlier)
    # Where a request was lost, the error on the page may be about the answer and not about the deed.
    refuted = failed and success != "satisfied" and not earlier.lost_request
    # What was verified stays so on record; a page can show an error long after the deed was done.
    if refuted and earlier.state != "verified_success":
        return CloseAsFailedAndSend(earlier)
    if not observed_since:
        return Suspect(earlier, "not_observed_since")
    if retry_of != earlier.transition_id:
        return Suspect(earlier, "not_named")
    return SendAgain(earlier, refuted)
