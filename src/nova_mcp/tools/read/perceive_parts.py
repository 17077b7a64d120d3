"""The parts that answers about a page are made of."""

from collections.abc import Sequence
from typing import Self

from nova_mcp.browser.channel.frame_ids import shown_id
from nova_mcp.browser.perceive.report import (
    Completeness,
    ResolvedRef,
    ShownBlocker,
    ShownCommit,
    ShownControl,
    ShownDelta,
    ShownForm,
)
from nova_mcp.browser.perceive.scan_values import AuthSurface, SeenFrame
from nova_mcp.tools.spec import Part, maybe


class Scroll(Part):
    above_fold_px: int
    below_fold_px: int


class Budget(Part):
    max_tokens: int
    est_tokens: int


class CommitPointCta(Part):
    ref: str
    name: str
    kind: str
    why: str
    suggested_tool: str


class BlockerPart(Part):
    kind: str
    blocking: bool | None
    ref: str
    name: str = maybe("")
    controls: dict[str, str]


class AuthPart(Part):
    stage: str
    logged_in: bool | None
    login_wall_visible: bool | None
    mfa_challenge: bool | None
    auth_error: bool | None


class FormControlPart(Part):
    ref: str
    label: str
    type: str
    required: bool
    invalid: bool
    value: str = maybe("")
    options: list[str] = maybe([])
    # Given when there are more of them than are listed.
    option_count: int = maybe(0)
    preferred_tool: str
    autocomplete: str


class FormPart(Part):
    name: str = maybe("")
    method: str = maybe("")
    controls: list[FormControlPart]


class FramePart(Part):
    frame_id: str
    origin: str
    rect: list[int]
    scanned: bool = maybe(default=False)


class DeltaPart(Part):
    added: list[str]
    changed: list[str]
    removed: list[str]

    @classmethod
    def of(cls, delta: ShownDelta) -> Self:
        return cls(added=list(delta.added), changed=list(delta.changed), removed=list(delta.removed))


class ResolvedPart(Part):
    ref: str
    live: bool
    reason: str = maybe("")
    line: str = maybe("")


class CompletenessPart(Part):
    shown: int
    total: int
    scan_truncated: bool = maybe(default=False)
    more: str | None = maybe()

    @classmethod
    def of(cls, seen: Completeness) -> Self:
        return cls(shown=seen.shown, total=seen.total, scan_truncated=seen.scan_truncated, more=seen.more)


def auth_part(auth: AuthSurface | None) -> AuthPart | None:
    if auth is None:
        return None
    return AuthPart(
        stage=auth.stage,
        logged_in=auth.logged_in,
        login_wall_visible=auth.login_wall_visible,
        mfa_challenge=auth.mfa_challenge,
        auth_error=auth.auth_error,
    )


def blocker_parts(blockers: Sequence[ShownBlocker]) -> list[BlockerPart]:
    return [
        BlockerPart(kind=one.kind, blocking=one.blocking, ref=one.ref, name=one.name, controls=dict(one.controls))
        for one in blockers
    ]


def commit_point_ctas(points: Sequence[ShownCommit]) -> list[CommitPointCta]:
    return [
        CommitPointCta(ref=one.ref, name=one.name, kind=one.kind, why=one.why, suggested_tool=one.suggested_tool)
        for one in points
    ]


def _control_part(one: ShownControl) -> FormControlPart:
    return FormControlPart(
        ref=one.ref,
        label=one.label,
        type=one.type,
        required=one.required,
        invalid=one.invalid,
        value=one.value,
        options=list(one.options),
        option_count=one.option_count if one.option_count > len(one.options) else 0,
        preferred_tool=one.preferred_tool,
        autocomplete=one.autocomplete,
    )


def form_parts(forms: Sequence[ShownForm]) -> list[FormPart]:
    return [
        FormPart(name=form.name, method=form.method, controls=[_control_part(one) for one in form.controls])
        for form in forms
    ]


def frame_parts(frames: Sequence[SeenFrame]) -> list[FramePart]:
    return [
        FramePart(frame_id=shown_id(one.frame_id), origin=one.origin, rect=list(one.rect), scanned=one.scanned)
        for one in frames
    ]


def resolved_parts(resolved: Sequence[ResolvedRef]) -> list[ResolvedPart]:
    return [ResolvedPart(ref=one.ref, live=one.live, reason=one.reason, line=one.line) for one in resolved]
