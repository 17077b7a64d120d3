"""Binds one call to closed-loop acting: its contract, its evidence, and the page it faces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from sqlalchemy import Connection

from nova_mcp.browser.act.action import Acted, AlreadyDone, RefusesCommits, Scene, left_the_page
from nova_mcp.browser.act.action_report import ActionReport, Judgement, build_report
from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.commits.commit_points import CommitKind, CommitPoint
from nova_mcp.browser.observe.page_witness import PageWitness
from nova_mcp.browser.perceive.scan_values import Answer, answer
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.redaction import is_card_number
from nova_mcp.core.urls import page_host, page_origin
from nova_mcp.core.values import Json
from nova_mcp.errors import CommitRefused, Fix
from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.memory.facts.policies import capability_missing
from nova_mcp.memory.notes.domain_refusals import acknowledge_required
from nova_mcp.tools.browse.learning_signals import note_scene
from nova_mcp.tools.browse.unseen_controls import note_unseen
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.receipt import ReceiptBook
from nova_mcp.tools.read.fact_hints import stored_facts
from nova_mcp.verification.contracts import templates
from nova_mcp.verification.contracts.codec import compared_texts, contract_to_json
from nova_mcp.verification.contracts.fact_keys import parse_fact
from nova_mcp.verification.model import Assertion, Contract, Verdict
from nova_mcp.verification.receipts import receipt_line
from nova_mcp.verification.request import Ask, Facing, ResolvedEarlier, Unreadable
from nova_mcp.verification.verifier import Transition
from nova_mcp.verification.witness import FactHints

_MACROS: Final = {
    "submit": "nova.guarded_submit_form",
    "auth": "nova.guarded_login",
    "switch_model": "nova.guarded_switch_model",
    "switch_sandbox": "nova.guarded_switch_sandbox",
}


# A call that waits for its element longer than this asks again before it acts.
HEARD_FOR_MS: Final = 250


@dataclass(frozen=True, slots=True)
class Wish:
    """What a call says about the outcome it wants.

    `commits` is set by macros, whose every dispatch commits something. `call` is the call itself, so that a refusal
    can name one that would work.
    """

    contract: Contract | None = None
    retry_of: str | None = None
    intent_key: str | None = None
    commits: bool = False
    sends: bool = False
    # The kinds of control a macro may press; a control that says something else is not what it was called for.
    kinds: frozenset[CommitKind] | None = None
    hints: FactHints = field(default_factory=FactHints)
    call: Mapping[str, Json] | None = None


def touched(ctx: ToolContext, scene: Scene) -> None:
    """Input goes out next: from here on the ledger must say that the page was touched, and where."""
    evidence = ctx.evidence
    evidence.action_dispatched = True
    evidence.selector = scene.prepared.selector
    evidence.fingerprint_id = scene.prepared.fingerprint
    evidence.input_is_harmless = not (scene.prepared.secret or is_card_number(scene.text or ""))
    evidence.flags.add("mutation_attempted")
    note_scene(ctx, scene)


async def refuse_unheard(ctx: ToolContext, tab: Tab) -> None:
    """The page went to another host since the call was let in, or that is a while ago: notes may have changed, and the
    store may have gone."""
    evidence, keeper, now_ms = ctx.evidence, ctx.domain_notes, ctx.ports.clock.monotonic_ms()
    if (host := page_host(tab.site_url)) == evidence.noted_host and now_ms - evidence.noted_at_ms < HEARD_FOR_MS:
        return
    await ctx.call.require_store()
    due = await keeper.due(ctx.connection, tab.target_id, tab.site_url)
    if due is not None and due.blocking:
        evidence.told.append(partial(keeper.told_refusal, due))
        raise acknowledge_required(due)
    evidence.noted_host, evidence.noted_at_ms = host, now_ms


class Preparing(RefusesCommits):
    """For what a macro does before its commit: nothing of it may commit anything by itself."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx

    async def touch(self, scene: Scene) -> None:
        await refuse_unheard(self._ctx, scene.tab)
        await note_unseen(self._ctx, scene)
        touched(self._ctx, scene)
        self._ctx.evidence.prepared_page = True

    async def commit(self, scene: Scene) -> None:
        await self.admit(scene)
        await self.touch(scene)


class CallGuard:
    """Stands between one call and the page."""

    def __init__(self, ctx: ToolContext, wish: Wish) -> None:
        self._ctx = ctx
        self._wish = wish
        self._transition: Transition = ctx.verifier.begin(
            Ask(
                caller=ctx.caller,
                call_id=ctx.call.call_id,
                tool_name=ctx.call.tool_name,
                target_id=ctx.tab.target_id,
                contract=wish.contract,
                retry_of=wish.retry_of,
                intent_key=wish.intent_key,
                session_id=ctx.call.session_id,
            )
        )
        self._receipt = ReceiptBook(ctx)
        self._is_commit = False
        self._is_noted = False
        self._in_force = False

    # -- what the acting code asks

    async def admit(self, scene: Scene) -> None:
        await self._transition.bind()
        point = scene.commit_point()
        self._refuse_other_kind(scene, point)
        self._refuse_uncontracted(scene, point)
        if not self._is_noted:
            self._is_noted = True
            await note_unseen(self._ctx, scene)
        self._is_commit = self._wish.commits or point is not None
        if self._is_commit and not self._signs_in(point):
            await self._refuse_incapable()
        self._in_force = self._transition.in_force
        if not self._in_force:
            return
        facing = await self._facing(scene, point)
        if self._is_commit:
            # Both first: nothing slow may come between the checks and the press.
            await self._receipt.before()
            await self._save_jar(scene)
        try:
            await self._transition.check(facing)
        except ResolvedEarlier as done:
            raise AlreadyDone(done.commit) from None

    async def _save_jar(self, scene: Scene) -> None:
        tab = scene.tab
        sandbox = self._ctx.browser.sandboxes.get(tab.principal, tab.sandbox_id)
        if sandbox is not None:
            await sandbox.save_before_commit()

    async def touch(self, scene: Scene) -> None:
        await refuse_unheard(self._ctx, scene.tab)
        touched(self._ctx, scene)
        self._ctx.evidence.prepared_page = True

    async def commit(self, scene: Scene) -> None:
        await refuse_unheard(self._ctx, scene.tab)
        self._refuse_other_kind(scene, scene.commit_point())
        if scene.commit_point() is not None and not self._is_commit:
            # What was typed has made a commit of it: everything that protects one has its say now.
            await self.admit(scene)
        if self._in_force:
            evidence = self._ctx.evidence
            evidence.selector = scene.prepared.selector
            evidence.fingerprint_id = scene.prepared.fingerprint
            await self._transition.commit(self._ctx.call.intent)
            evidence.closes = self._transition.transition_id
            evidence.also.append(self._close)
        touched(self._ctx, scene)

    def _close(self, conn: Connection, record: CallRecord, link: Link) -> None:
        self._transition.close(conn, record, delivered=not self._ctx.evidence.undelivered)

    async def follow(self, scene: Scene) -> Verdict | None:
        return await self._transition.follow(self._progress)

    async def end(self) -> None:
        await self._transition.end()

    def preparing(self) -> "Writing":
        """The guard for what is written before the commit, under the commit's own admission."""
        return Writing(self._ctx, self)

    # -- what the tool asks

    @property
    def is_commit(self) -> bool:
        """Whether what was admitted commits something; known once it was."""
        return self._is_commit

    @property
    def receipt_line(self) -> str | None:
        receipt = self._transition.receipt
        return None if receipt is None else receipt_line(receipt)

    async def reported(self, acted: Acted, known: Judgement) -> ActionReport:
        """The report of an action, with what the contract came to; a commit leaves a receipt."""
        commit = None if acted.observation is None else self._transition.told()
        report = build_report(acted, self._ctx.tab, replace(known, commit=commit))
        if commit is not None and self._is_commit:
            self._transition.receipt = await self._receipt.after(commit, self._transition.contract, report)
        return report

    # -- parts

    async def _progress(self, elapsed_ms: float) -> None:
        await self._ctx.call.progress(elapsed_ms / 1000, None, "watching for the outcome")

    def _witness(self, scene: Scene) -> PageWitness:
        contract = self._transition.contract
        compared = {} if contract is None else compared_texts(contract)
        hints = replace(self._wish.hints, compared=compared)
        return PageWitness.of(scene.tab, scene.window, scene.prepared, hints, stored_facts(self._ctx))

    async def _facing(self, scene: Scene, point: CommitPoint | None) -> Facing:
        prepared = scene.prepared
        question: Json = {
            "text": scene.text,
            "append": scene.appends,
            "enter": scene.trigger == "enter",
            "sends": self._wish.sends or (point is not None and point.kind == "send"),
            "selectors": list(self._selectors()),
        }
        try:
            told = answer(await scene.tab.channel.ask("commitIdentity", question, frame_id=prepared.frame_id))
        except DocumentChanged:
            raise navigating() from None
        if told.get("lost"):
            raise left_the_page(prepared.ref)
        witness = self._witness(scene)
        return Facing(
            witness=witness,
            unreadable=(*self._no_css(told), *await self._no_frame(witness)),
            is_commit=self._is_commit,
            host=page_host(prepared.url),
            origin=page_origin(prepared.url) or "",
            control=str(told["control"]),
            fields=str(told["fields"]),
            element=prepared.line,
            document=scene.tab.channel.document,
            observed_at_ms=scene.tab.observed.get(self._ctx.caller.owner),
        )

    def _members(self) -> tuple[Assertion, ...]:
        contract = self._transition.contract
        return () if contract is None else (*contract.preconditions.members, *contract.outcome_members)

    def _selectors(self) -> Mapping[str, str]:
        """The selectors of the contract's facts, each with the key it stands in."""
        refs = (parse_fact(member.fact_key) for member in self._members())
        return {ref.css: ref.key for ref in refs if ref.css is not None}

    def _no_css(self, told: Answer) -> Iterator[Unreadable]:
        keys = self._selectors()
        for css in told.get("unreadable", ()):
            yield Unreadable(keys[str(css)], "has a selector that the browser can't read")

    async def _no_frame(self, witness: PageWitness) -> list[Unreadable]:
        """Facts of frames that are not in the page; an id that was never given out can't come true later."""
        named = [member for member in self._members() if member.frame_id is not None]
        missing = await witness.missing_frames({member.frame_id for member in named if member.frame_id is not None})
        return [
            Unreadable(one.fact_key, f'names a frame that is not in the page ("{(one.frame_id or "")[:60]}")')
            for one in named
            if one.frame_id in missing
        ]

    def _signs_in(self, point: CommitPoint | None) -> bool:
        """Signing in is how most of what can be demanded comes about."""
        return "auth" in (self._wish.kinds or ()) or (point is not None and point.kind == "auth")

    async def _refuse_incapable(self) -> None:
        ctx = self._ctx
        if ctx.settings.gates.capability != "block":
            return
        lacking = await ctx.facts.lacking("commit", ctx.facts.place(ctx.tab))
        if lacking is not None and lacking.decision == "block":
            raise capability_missing(lacking, ctx.caller.owner[1], ctx.tab.target_id)

    def _refuse_other_kind(self, scene: Scene, point: CommitPoint | None) -> None:
        if point is None or self._wish.kinds is None or point.kind in self._wish.kinds:
            return
        raise CommitRefused(
            "guarded_commit.missing_contract",
            f"{scene.prepared.ref} is another kind of commit ({point.kind}): {point.why}.",
            "If that is meant, click it with nova.click_selector and say in expect what should come of it.",
            stage="guarded_commit_check",
            details={"commitKind": point.kind, "why": point.why, "suggestedTool": point.suggested_tool},
        )

    def _refuse_uncontracted(self, scene: Scene, point: CommitPoint | None) -> None:
        contract = self._transition.contract
        if point is None or (contract is not None and contract.has_outcome):
            return
        control = css_of(scene.prepared.selector)
        start = starter_for(point, control)
        fix = self._fix(scene, point, start)
        raise CommitRefused(
            "guarded_commit.missing_contract",
            f"This is a commit point ({point.kind}): {point.why}.",
            "Send the call in fix, or say yourself in expect what should come of it.",
            stage="guarded_commit_check",
            fix=fix,
            details={
                "commitKind": point.kind,
                "why": point.why,
                "suggestedTool": point.suggested_tool,
                "starterContract": contract_to_json(start),
            },
        )

    def _fix(self, scene: Scene, point: CommitPoint, start: Contract) -> Fix:
        """A call that works as it stands: a macro where one fits, else this very call with an expectation."""
        prepared = scene.prepared
        whose: dict[str, Json] = {"targetId": scene.tab.target_id, "agentId": self._ctx.caller.agent_id}
        with_password = prepared.form is not None and any(field.type == "password" for field in prepared.form.fields)
        macro = _MACROS.get(point.kind)
        if scene.trigger == "click" and macro is not None and not scene.accepts:
            if point.kind in ("switch_model", "switch_sandbox"):
                label = "model" if point.kind == "switch_model" else "workspace"
                return Fix(macro, {**whose, label: prepared.acting.facts.name})
            if point.kind == "submit" or with_password:
                return Fix(macro, {**whose, "ref": prepared.ref})
        call = dict(self._wish.call or {}) | whose
        # That a control is gone proves nothing beside a warning, and the short form can't ask for both.
        return Fix(self._ctx.call.tool_name, {**call, "transitionContract": contract_to_json(start)})


class Writing(Preparing):
    """For text that only serves a commit: what speaks against the commit speaks against writing it."""

    def __init__(self, ctx: ToolContext, commit: CallGuard) -> None:
        super().__init__(ctx)
        self._commit = commit

    async def admit(self, scene: Scene) -> None:
        await self._commit.admit(scene)

    async def commit(self, scene: Scene) -> None:
        await self.touch(scene)


def css_of(selector: str | None) -> str | None:
    """A selector that facts can use; names and texts are no CSS."""
    return None if selector is None or selector.startswith(("text=", "role=")) else selector


def starter_for(point: CommitPoint, control: str | None) -> Contract:
    """A contract to begin with, for that kind of commit on this page."""
    match point.kind:
        case "send":
            return templates.send_message()
        case "auth" if point.suggested_tool.endswith("guarded_login"):
            return templates.login()
        case _:
            return templates.starter(control)
