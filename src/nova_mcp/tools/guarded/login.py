"""Signing in: with stored secrets or what is already filled in, once, and never past a second factor."""

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from nova_mcp.browser.act.action import Acted, Guard, Manner
from nova_mcp.browser.act.click import Press, click
from nova_mcp.browser.act.secret_entry import SecretGuard
from nova_mcp.browser.act.type_text import Text, type_text
from nova_mcp.browser.commits.commit_points import CommitKind
from nova_mcp.browser.commits.discover import FoundControl, LoginForm, find_login
from nova_mcp.browser.perceive.auth_surface import AuthSurface, read_auth
from nova_mcp.errors import NovaError, Precondition
from nova_mcp.secrets.model import Secret
from nova_mcp.tools.browse.act_support import ACTING_GATES, Answering, ElementResult, act_deadline, manner_of, tell
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.guard import CallGuard, Preparing
from nova_mcp.tools.guarded.submit import BUNDLES, GuardedParams, insist, press_enter
from nova_mcp.tools.read.fact_hints import note_page
from nova_mcp.tools.spec import Part, tool, widened
from nova_mcp.verification.contracts import templates

SIGNING_IN: Final[frozenset[CommitKind]] = frozenset({"auth", "submit"})
SecretName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class LoginParams(GuardedParams):
    username: str | None = Field(None, min_length=1, max_length=320)
    username_secret: SecretName | None = None
    password_secret: SecretName | None = Field(None, description="name of a stored secret")

    @model_validator(mode="after")
    def _one_username(self) -> Self:
        if self.username is not None and self.username_secret is not None:
            raise ValueError("give username or usernameSecret, not both")
        return self


class AuthSeen(Part):
    stage: str
    logged_in: bool | None
    login_wall_visible: bool | None
    mfa_challenge: bool | None
    auth_error: bool | None


class LoginResult(ElementResult):
    auth: AuthSeen | None


@tool(
    title="Sign in",
    effect="act",
    bundles=BUNDLES,
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + 3 * p.timeout_ms + p.window_ms("submit_form"),
    guards=lambda p: p.window_ms("submit_form"),
    private_arguments=("username",),
)
async def guarded_login(ctx: ToolContext, p: LoginParams) -> LoginResult:
    """Signs in with stored secrets or what is already filled in, once, and says whether it worked. A second factor is
    reported, not solved."""
    tab = ctx.tab
    tab.require_ready()
    form = await find_login(tab, p.locator())
    await _fill_in(ctx, p, form)
    guard = CallGuard(ctx, p.wish(templates.login(), SIGNING_IN))
    acted = await _commit(ctx, form, manner_of(p, guard))
    told = await tell(ctx, guard, acted, Answering("signed in with", detail=p.output_detail))
    if told.verify_state == "verified":
        await ctx.browser.sandboxes.by_id(tab.sandbox_id).save()
    return widened(told, LoginResult, auth=await _auth(ctx))


async def _commit(ctx: ToolContext, form: LoginForm, manner: Manner) -> Acted:
    if form.submit is not None:
        return await click(ctx.tab, form.submit.locator, Press(), manner, ctx.ports)
    if form.last_field is None:
        raise Precondition(
            "type.not_editable",
            "The login form has neither a control to press nor a field to press Enter in.",
            "Name its submit control with selector or ref.",
        )
    return await press_enter(ctx, form.last_field, manner)


async def _fill_in(ctx: ToolContext, p: LoginParams, form: LoginForm) -> None:
    """What is not given must stand there already."""
    account = None if p.username_secret is None else await ctx.secrets.find(p.username_secret)
    password = None if p.password_secret is None else await ctx.secrets.find(p.password_secret)
    if account is not None:
        await _write_secret(ctx, p, _needed(form.username, "account"), account)
    elif p.username is not None:
        await _write(ctx, p, _needed(form.username, "account"), p.username, Preparing(ctx))
    # The first step of a sign-in in two steps asks for the account alone.
    if password is not None and form.kind == "password":
        await _write_secret(ctx, p, _needed(form.password, "password"), password)


def _needed(control: FoundControl | None, what: str) -> FoundControl:
    if control is None:
        raise Precondition(
            "type.not_editable", f"The login form shows no {what} field.", "Look at the page with nova.perceive."
        )
    return control


async def _write_secret(ctx: ToolContext, p: LoginParams, field: FoundControl, secret: Secret) -> None:
    await _write(ctx, p, field, secret.value, SecretGuard(Preparing(ctx), secret))


async def _write(ctx: ToolContext, p: LoginParams, field: FoundControl, text: str, guard: Guard) -> None:
    manner = Manner(timeout_ms=p.timeout_ms, guard=guard)
    insist(await type_text(ctx.tab, field.locator, Text(text), manner, ctx.ports), field)


async def _auth(ctx: ToolContext) -> AuthSeen | None:
    """What the page shows now; a page that can't be read says nothing."""
    try:
        seen: AuthSurface = await read_auth(ctx.tab)
    except NovaError:
        return None
    note_page(ctx, None, seen)
    return AuthSeen(
        stage=seen.stage,
        logged_in=seen.logged_in,
        login_wall_visible=seen.login_wall_visible,
        mfa_challenge=seen.mfa_challenge,
        auth_error=seen.auth_error,
    )
