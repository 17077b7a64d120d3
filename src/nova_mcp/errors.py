"""The catalogue of failures: every reason with its family, its number, one sentence and what to do next.

A call that fails raises the family with one of its reasons. Where it knows more than stands here, it brings a sentence
or a hint of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from nova_mcp.core.values import Json

Status = Literal["ok", "partial", "failed", "blocked", "not_found"]
Stage = Literal[
    "validate",
    "gate",
    "resolve",
    "actionability",
    "guarded_commit_check",
    "precondition",
    "dispatch",
    "observe",
    "verify",
    "done",
]
RetryAdvice = Literal["safe_to_retry", "do_not_retry", "check_postcondition_first"]


@dataclass(frozen=True, slots=True)
class Fix:
    """A call that would clear the way, ready to be sent."""

    tool: str
    args: Mapping[str, Json]


class Reason(NamedTuple):
    """What an answer says of a failure unless the call that failed knows more."""

    message: str
    hint: str


Reasons = Mapping[str, Reason]


class NovaError(Exception):
    """A call that could not do what it was asked for; each family owns its number and its reasons."""

    error_code: ClassVar[int] = -32603
    status: ClassVar[Status] = "failed"
    reasons: ClassVar[Reasons] = {}
    untouched_advice: ClassVar[RetryAdvice] = "safe_to_retry"
    # The gate that speaks through this error, where a tool meets it while it runs.
    gate_id: ClassVar[str | None] = None

    def __init__(
        self,
        reason_code: str,
        message: str | None = None,
        hint: str | None = None,
        *,
        stage: Stage = "resolve",
        retry_after_ms: int | None = None,
        fix: Fix | None = None,
        details: Mapping[str, Json] | None = None,
        action_dispatched: bool | None = None,
    ) -> None:
        if reason_code not in self.reasons:
            raise ValueError(f"{reason_code} is not a reason of {type(self).__name__}")
        usual = self.reasons[reason_code]
        self.reason_code = reason_code
        self.message = usual.message if message is None else message
        self.hint = usual.hint if hint is None else hint
        super().__init__(self.message)
        self.stage = stage
        self.retry_after_ms = retry_after_ms
        self.fix = fix
        self.details: Mapping[str, Json] = details or {}
        # None leaves the question to the evidence of the call; False is proof that nothing arrived.
        self.action_dispatched = action_dispatched

    @property
    def retryable(self) -> bool:
        return self.retry_after_ms is not None

    def retry_advice(self, *, dispatched: bool) -> RetryAdvice:
        return "check_postcondition_first" if dispatched else self.untouched_advice

    def body(self, *, dispatched: bool) -> dict[str, Json]:
        """What every failed call answers, whoever has to answer it."""
        body: dict[str, Json] = {
            "ok": False,
            "status": self.status,
            "errorCode": self.error_code,
            "reasonCode": self.reason_code,
            "message": self.message,
            "hint": self.hint,
            "stage": self.stage,
            "retryable": self.retryable,
            "retryAdvice": self.retry_advice(dispatched=dispatched),
        }
        if self.retry_after_ms is not None:
            body["retryAfterMs"] = self.retry_after_ms
        return body


class InvalidParams(NovaError):
    """The arguments do not describe a call."""

    error_code = -32602
    untouched_advice = "do_not_retry"
    reasons: ClassVar[Reasons] = {
        "invalid_params": Reason(
            "The arguments do not describe a call of this tool.", "Nothing ran. Correct the arguments and call again."
        ),
        "call.nested": Reason("nova.call can't call itself.", "Name the tool you want in `tool`."),
        "claim.finalization_token_required": Reason(
            "finalizeDecision needs the claim's finalizationToken.",
            "Send the token that nova.tab_claim returned, or leave the decision to Nova.",
        ),
        "conflicting_alias": Reason(
            "domain, scopeDomain and domainScope name different hosts.", "They mean the same; send one of them."
        ),
        "conflicting_arguments": Reason("Two of the arguments exclude each other.", "Send one of them."),
        "conflicting_lookup": Reason("give only one of bundle, toolName and query", "Drop all but one and call again."),
        "context_required": Reason(
            "Nothing says what this belongs to.", "Give the profile, the run or the context it is about."
        ),
        "domain_required": Reason(
            "Your current tab shows no site, so it is not clear what this is about.", "Name the site in domain."
        ),
        "empty_update": Reason("The call changes nothing.", "Name at least one change."),
        "event_id_reused": Reason(
            "This clientEventId was already applied with another payload.",
            "Send a new clientEventId for a new change; resend the old payload to get its answer again.",
        ),
        "expected_content_rev_required": Reason(
            "The profile exists, and a change of it names the revision it was made from.",
            "Read it with nova.task_profile_get and send its contentRev as expectedContentRev.",
        ),
        "filter_required": Reason(
            "It is not clear what to forget.", "Name a memoryId, a domain, a memoryType, or all: true."
        ),
        "host_mismatch": Reason(
            "The tab shows another site than the one named.",
            "Acknowledge where the page is, or name the tab that shows it.",
        ),
        "illegal_discovery_transition": Reason(
            "The discovery of units can't go from its state to that one.",
            "Read the run with nova.task_instance_get and go on from its state.",
        ),
        "illegal_unit_transition": Reason(
            "A unit can't go from its status to that one.",
            "Read the run with nova.task_instance_get and go on from its state.",
        ),
        "invalid_completion_condition": Reason(
            "The parts of completionCondition do not fit together.",
            "exhaustive + all_units_processed, or threshold or exploratory + checked_units or distinct_findings.",
        ),
        "invalid_domain": Reason(
            "The text names no host.", "Name one host, such as shop.example.com; an ending such as co.uk is none."
        ),
        "invalid_unit_locator": Reason(
            "A unit's locator can't be used.", "Give a URL or a selector as the argument's description says."
        ),
        "invalid_unit_source": Reason(
            "The units can't be taken from that source.",
            "explicit needs explicitUrls, site_urls needs scopeDomain; both need a run of page or url units.",
        ),
        "key.not_allowed": Reason(
            "That key is not pressed in a page.",
            "Use nova.navigate, nova.reload or the tab tools for what the browser does.",
        ),
        "learn.coverage_reason_required": Reason(
            "coverageExhausted needs coverageExhaustedReason while Learn Mode is unfinished.",
            "Say in 20 to 500 characters why the rest can't be covered.",
        ),
        "no_target": Reason(
            "There is no tab to acknowledge a note for.", "Open the page first; an acknowledgement counts for one tab."
        ),
        "note_required": Reason("The change needs a note that says why.", "Send the reason in note."),
        "note_too_long": Reason("A note that warns or blocks is too long.", "Shorten it, or set enforcement to none."),
        "notes.secret_like": Reason(
            "The text looks like a secret, and such things are never kept; nothing was stored.",
            "Say where the secret is kept, and leave it out itself.",
        ),
        "ok.sensitive_value": Reason(
            "A claim looks like a secret, and such things are never kept; nothing of this call was.",
            "Report the state it stands for, such as that a password is set, and leave the secret out.",
        ),
        "override_forbidden": Reason(
            "A run can't override what proves completion.",
            "Leave it out, or change the profile with nova.task_profile_upsert.",
        ),
        "pks.outside_surface": Reason(
            "A selector finds something outside the surface that the entry is about.",
            "Nothing was stored. Correct it and call again.",
        ),
        "pks.polarity_mismatch": Reason(
            "A control does something else than its polarity says.", "Nothing was stored. Correct it and call again."
        ),
        "pks.polarity_required": Reason(
            "A step on a consent layer does not say whether it accepts or refuses.",
            "Nothing was stored. Correct it and call again.",
        ),
        "pks.scope_full": Reason(
            "The site has as many entries as it may have.",
            "Deprecate an entry that is no longer needed, then call again.",
        ),
        "pks.scope_mismatch": Reason(
            "The tab shows another site than the one in scope.", "Leave scope out, or name a tab that shows it."
        ),
        "pks.script_content": Reason(
            "The content holds script, and knowledge never does.", "Nothing was stored. Correct it and call again."
        ),
        "pks.secret_like": Reason(
            "The content looks like a secret, and such things are never kept.",
            "Nothing was stored. Correct it and call again.",
        ),
        "pks.selector_too_broad": Reason(
            "A selector finds more than the element it is meant for.", "Nothing was stored. Correct it and call again."
        ),
        "reason_required": Reason("The change needs a reason.", "Send it in reason."),
        "sandbox.unknown": Reason("There is no such sandbox.", "Call nova.sandbox_list to see yours."),
        "selector.invalid": Reason("The selector can't be read.", 'Use CSS, text=…, role=button[name="…"], or a ref.'),
        "signals_required": Reason(
            "There is no page to take signals from.", "Open the page, or send what you see in observation.signals."
        ),
        "size_limit": Reason("There is more of something than is stored.", "Nothing was stored. Send less."),
        "tab.unknown": Reason(
            "There is no such tab.", "Call nova.tabs to see what is open, or nova.tab_new to open another."
        ),
        "unknown_bundle": Reason("There is no such bundle.", "Pick one of knownBundles."),
        "unknown_check": Reason("The run has no such check.", "Use the checks that nova.task_instance_verify lists."),
        "unknown_scan": Reason("There is no registered scan of that id.", "Use one of knownScanIds."),
        "unknown_tool": Reason("There is no tool of that name.", "Look at closest, or search with nova.tools_bundle."),
        "unknown_unit": Reason(
            "The run has no unit of that key.",
            "Use the keys that nova.task_instance_get lists, or report it in discoveredUnits first.",
        ),
    }

    def __init__(
        self,
        reason_code: str,
        message: str | None = None,
        hint: str | None = None,
        *,
        details: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(reason_code, message, hint, stage="validate", details=details)


class NotFound(NovaError):
    """What the call names is not there."""

    error_code = -32004
    status: ClassVar[Status] = "not_found"
    reasons: ClassVar[Reasons] = {
        "action.no_input_field": Reason(
            "The page shows no box to write a message in.",
            "Name the box with inputSelector; perceive lists textbox lines.",
        ),
        "action.no_send_control": Reason(
            "Nothing beside the message box sends it.",
            "Name the control with selector or ref, or press Enter in the box with nova.type_selector.",
        ),
        "domain_note.not_found": Reason(
            "There is no such note about that site.", "nova.domain_notes_list shows which there are."
        ),
        "frame.detached": Reason("The frame is no longer in the page.", "Call nova.perceive again."),
        "frame.unknown": Reason("There is no frame with that id on this page.", "Use a frameId that Nova gave you."),
        "goal.not_found": Reason(
            "There is no such goal.", "nova.goal_register with op query and no goalId lists the goals there are."
        ),
        "learn.opportunity_not_found": Reason(
            "You were asked nothing by that id.", "Use the opportunityId of a pksSemanticLearning block."
        ),
        "operator_notes.not_found": Reason(
            "There is no note of that id, so nothing was stored.",
            "Leave id out to store a new one; nova.operator_notes_list shows those there are.",
        ),
        "option.not_found": Reason("The control has no such option.", "Use one of the labels in options."),
        "pks.phenomenon_not_found": Reason("The site has no entry of that id.", "nova.pks_get lists its entries."),
        "pks.scope_not_found": Reason(
            "Nothing is known of that site.",
            "nova.pks_list names the sites that something is known of; nova.pks_upsert begins with this one.",
        ),
        "ref.stale": Reason("The element is no longer in the page.", "Call nova.perceive again."),
        "ref.stale_document": Reason(
            "The ref belongs to a document that is no longer open.", "Call nova.perceive again."
        ),
        "screenshot.not_capturable": Reason(
            "That part of the page is hidden or empty.", "Choose another element or region."
        ),
        "scroll.container_not_found": Reason(
            "There is no such box to scroll.",
            "Leave container out to scroll what a person would, or use a ref from nova.perceive.",
        ),
        "secret.not_found": Reason(
            "There is no secret of that name.", "Ask the person to add it to secrets.toml in Nova's data folder."
        ),
        "selector.not_found": Reason("Nothing on the page matches the selector.", "Use a ref from nova.perceive."),
        "snapshot.expired": Reason(
            "There is no such snapshot any more.", "Call nova.perceive and use its perceptionId."
        ),
        "tab.no_active_tab": Reason(
            "You have no current tab.", "Open a page with nova.navigate, or name an open tab by its targetId."
        ),
        "task.guidance_not_found": Reason(
            "There is no such guidance.", "nova.task_guidance_logs lists what was logged."
        ),
        "task.instance_not_found": Reason(
            "There is no such run.", "Start one with nova.task_instance_create, or take the id from its answer."
        ),
        "task.profile_not_found": Reason("There is no such profile.", "nova.task_profiles lists those there are."),
        "upload.not_found": Reason(
            "There is no readable file of that name.", "Check the name; folders can't be uploaded."
        ),
        "wait_for_selector.timeout": Reason(
            "The element did not come into the state in time.",
            "Look at the page with nova.perceive, or wait longer with timeoutMs.",
        ),
    }


class Missed(NotFound):
    """What was waited for did not come about in time, so the answer is `failed`."""

    status = "failed"


class Precondition(NovaError):
    """The page or the store is not in a state that allows the call."""

    error_code = -32003
    reasons: ClassVar[Reasons] = {
        "action.disabled": Reason("The control is disabled.", "Do first what the page waits for, then call again."),
        "action.not_visible": Reason("The element can't be seen.", "Open what hides it."),
        "action.obstructed": Reason(
            "The element is covered by another one.", "Deal with the element named in obstructedBy, then call again."
        ),
        "action.unstable": Reason(
            "The element moved or left the page before it could be used.", "Call nova.perceive again."
        ),
        "browser_memory.full": Reason(
            "There are as many memories of that site as there may be, all of them the user's own.",
            "Forget some with nova.memory_forget.",
        ),
        "domain_note.not_delivered": Reason(
            "The current text of that note has not been shown to you in full yet.",
            "Read it first: send the call in fix.",
        ),
        "domain_notes.full": Reason(
            "There are as many notes as there may be; nothing is pushed out to make room.",
            "Delete one with nova.domain_note_delete, or put more into one that is there.",
        ),
        "eval.script_threw": Reason(
            "The script failed.", "Correct the expression; what it did before it failed is done."
        ),
        "goal.terminal": Reason("The goal has ended.", "Register another goal."),
        "guarded_commit.dispatch_prepare_rejected": Reason(
            "The goal or the earlier transition does not allow this commit now.",
            "Look at the goal with nova.goal_register and op query.",
        ),
        "guarded_commit.duplicate_suspected": Reason(
            "This commit was sent before.",
            "Look at the page; if it is really meant again, call with another intentKey.",
        ),
        "guarded_commit.eval_error": Reason(
            "Nothing was sent: the contract can't be evaluated.", "Correct that part of the contract, then call again."
        ),
        "guarded_commit.postcondition_failed": Reason(
            "The commit was sent, and what should have come of it did not.",
            "Read what the page says with nova.perceive and put that right.",
        ),
        "guarded_commit.precondition_error": Reason(
            "Whether the page is in the state that this action needs can't be told.",
            "failedAssertions says what could not be read; use a simpler condition or look at the page again.",
        ),
        "guarded_commit.precondition_failed": Reason(
            "The page is not in the state that this action needs.",
            "failedAssertions says what is missing; put that right, then call again.",
        ),
        "loop.same_action": Reason(
            "This very call has failed again and again on an unchanged page.",
            "Look at the page with nova.perceive and try another way.",
        ),
        "navigation.beforeunload_blocked": Reason(
            "The page asks before it is left, and stayed.", "Save what is unsaved, or call again with force."
        ),
        "navigation.cannot_go_back": Reason("There is no page to go back to.", "Open an address with nova.navigate."),
        "navigation.cannot_go_forward": Reason(
            "There is no page to go forward to.", "Open an address with nova.navigate."
        ),
        "ok.no_service": Reason(
            "The tab shows no web page, so there is no service to know anything about.",
            "Open an http or https page with nova.navigate first.",
        ),
        "operator_notes.full": Reason(
            "There are as many notes as there may be, and all of them are in use.",
            "Delete one with nova.operator_notes_delete.",
        ),
        "option.disabled": Reason("The option can't be chosen now.", "Fill in what it waits for, or choose another."),
        "option.not_applied": Reason("The choice did not hold.", "Click it first, or look at the page again."),
        "pks.alias_taken": Reason(
            "Another platform has that alias.", "Leave that alias out, or add to the platform it belongs to."
        ),
        "pks.drift_blocked": Reason(
            "The page has moved too far from what was learned.",
            "Check it with nova.revalidate and correct it with nova.pks_patch.",
        ),
        "pks.element_changed": Reason(
            "An element no longer looks like the one the step was learned on.",
            "Check it with nova.revalidate and correct it with nova.pks_patch.",
        ),
        "pks.playbook_timeout": Reason(
            "The time was up before every step was done.",
            "Look at the page with nova.perceive before going on; a larger timeoutMs gives it more time.",
        ),
        "pks.scope_not_open": Reason(
            "The site is not open in any of your tabs.",
            "Open a page of it first; what is written is checked against it.",
        ),
        "read.source_changed": Reason(
            "The text changed since the token was given out.",
            "Call nova.read_text without continuationToken to read the new text.",
        ),
        "ref.ambiguous": Reason("Several elements could be the one the ref stands for.", "Call nova.perceive again."),
        "ref.identity_changed": Reason(
            "The element is no longer the one the ref was given for.", "Call nova.perceive again."
        ),
        "reload.not_needed": Reason(
            "The tab answers, so there is nothing to recover.", "Call nova.reload without recover."
        ),
        "sandbox.limit_reached": Reason(
            "There are as many sandboxes as there may be.",
            "Delete a sandbox that is no longer needed with nova.sandbox_delete.",
        ),
        "scroll.not_scrollable": Reason(
            "The box can't be scrolled.", "Leave container out to scroll what a person would."
        ),
        "search.regex_timeout": Reason(
            "The regular expression took longer than a second and was ended.",
            "Use a simpler one without nested repetition, or match contains.",
        ),
        "selector.ambiguous": Reason(
            "The selector matches several visible elements.", "Use one of the candidates' refs."
        ),
        "tab.active_ambiguous": Reason('"active" could mean any of several tabs.', "Name the tab by its targetId."),
        "tab.limit_reached": Reason("There are as many tabs as there may be.", "Close tabs with nova.tab_close."),
        "type.not_editable": Reason(
            "The element takes no text.", "Choose a text field; perceive lists them as textbox."
        ),
        "upload.multiple_not_allowed": Reason("The file input takes one file.", "Send one file."),
        "upload.not_file_input": Reason(
            "The element is no file input, and pressing it asked for no file.",
            "Name the file input itself, or the button that opens the file chooser.",
        ),
        "upload.type_not_accepted": Reason(
            "The file input does not take that kind of file.", "Send a file of a kind that it takes."
        ),
        "wait_for_selector.still_changing": Reason(
            "The element is there, but it kept changing.", "Wait again, or with a smaller stableMs."
        ),
    }


class Stopped(Precondition):
    """The page itself holds the call back, so the answer is `blocked`, not `failed`."""

    status = "blocked"


class Repeated(Stopped):
    """Doing it again could do it twice, so the page has to be looked at first."""

    untouched_advice = "check_postcondition_first"


class Unavailable(NovaError):
    """A part Nova depends on is gone or busy."""

    error_code = -32002
    reasons: ClassVar[Reasons] = {
        "browser.launch_failed": Reason(
            "The browser did not start.",
            "Look at the machine's memory and processes, then try again; nova doctor checks the installation.",
        ),
        "browser.not_found": Reason(
            "No Chromium, Chrome or Edge was found.", "Run `playwright install chromium` or set NOVA_BROWSER."
        ),
        "browser.restart_limit": Reason(
            "The browser ended more than three times within a minute.",
            "Wait a minute; then look at the machine's memory and the browser's own log.",
        ),
        "call.deadline": Reason(
            "The call did not end in time.", "Look at the page with nova.perceive before repeating it."
        ),
        "cdp.renderer_stalled": Reason(
            "The page did not answer in time.", "Wait and try again, or call nova.reload with recover:true."
        ),
        "claim.finalize_failed": Reason(
            "The claim could not be finalized and stays yours.", "Release it again in a moment."
        ),
        "dialog.storm": Reason(
            "The page opened dialog after dialog, so it was closed and opened anew under the same tab id.",
            "Look at the tab again with nova.perceive before acting on it.",
        ),
        "guarded_commit.coordinator_busy": Reason(
            "Another call is acting on the same target.",
            "Wait for its answer, then look at the page before acting on it.",
        ),
        "human.unavailable": Reason(
            "Nobody answered.", "Tell your user: `nova watch` or the dashboard answers questions."
        ),
        "navigation.failed": Reason("The address could not be opened.", "Check the address, or try again later."),
        "navigation.timeout": Reason(
            "The address did not answer in time.", "Try again, or give it more time with timeoutMs."
        ),
        "page.navigating": Reason("The page was replaced meanwhile.", "Wait for the page to settle, then call again."),
        "sandbox.node_lost": Reason(
            "The browser that held the sandbox is gone.",
            "nova.reload brings a tab back; kept sandboxes come back with their logins.",
        ),
        "server.shutting_down": Reason(
            "The server is shutting down.", "Connect again, look at the page, then decide whether to repeat the call."
        ),
        "store.unavailable": Reason(
            "The evidence store can't be used.",
            "Tools that only read still work; their answers say that they were not recorded.",
        ),
        "tab.busy": Reason(
            "Another call held this tab for too long.",
            "Try again shortly, or work in a tab of your own (nova.tab_new).",
        ),
        "tab.crashed": Reason(
            "The page's process crashed.", "Call nova.reload with recover:true to bring the tab back."
        ),
        "tab.lost": Reason(
            "The page is gone.", "Call nova.reload with recover:true, or nova.tabs to see what is open."
        ),
    }


class Blocked(NovaError):
    """A gate refused the call before it ran."""

    error_code = -32001
    status = "blocked"
    reasons: ClassVar[Reasons] = {
        "acknowledge_required": Reason(
            "Notes about this site must be acknowledged before its page is acted on.",
            "Read notes, decide whether your call still fits them, then send the call in fix and repeat yours.",
        ),
        "agent.shared_id": Reason(
            "Two connections act as the same agent, so they share one active tab.",
            "Give each client an agentId of its own.",
        ),
        "blocking_overlay_active": Reason(
            "A layer covers the page, and the target is not on it.",
            "Get rid of the layer first, or act on what stands on it.",
        ),
        "bootstrap.required": Reason(
            "No instructions were loaded in this session; get_instructions gives them.",
            "Read them once: what counts as proof, what is known here, and which runs are open.",
        ),
        "guarded_commit.missing_contract": Reason(
            "This is a commit point, and nothing says what should come of it.",
            "Say what should come of it with expect or transitionContract.",
        ),
        "perceive.required": Reason(
            "Nobody has looked at this document yet.", "Look first, then act on what is really there."
        ),
        "safety.emergency_stop": Reason(
            "The operator has stopped Nova.", "Only a person can lift it: remove the STOP file from the data folder."
        ),
        "storage.low_free_space": Reason(
            "The data folder's disk has too little free space for this call.",
            "Free disk space or move the data folder; evidence must stay writable.",
        ),
    }


class Unacknowledged(Blocked):
    """A note that has to be answered for first."""

    gate_id = "user.domain_note"


class CommitRefused(Blocked):
    """A control that commits, asked for without proof of what should come of it."""

    gate_id = "safety.guarded_commit"


class PolicyDenied(NovaError):
    """The operator's settings forbid it."""

    error_code = -32035
    status = "blocked"
    untouched_advice = "do_not_retry"
    reasons: ClassVar[Reasons] = {
        "blockers.needs_human": Reason(
            "What lies over the page has no control that refuses or closes it.",
            "A person has to decide; mode aggressive hides layers that are neither a log-in, a paywall nor a check.",
        ),
        "blockers.repeat_suppressed": Reason(
            "The layers on this page did not go away when this was tried before.",
            "Work around them, use mode aggressive, or ask a person with nova.ask_human.",
        ),
        "browser_memory.disabled": Reason(
            "Browser Memory is off for this user.",
            "Only the operator can turn it on: notes.browser_memory.users in nova.toml.",
        ),
        "browser_memory.domain_excluded": Reason(
            "Nothing is remembered about that site.",
            "Keep this to yourself; the operator decides with notes.browser_memory.allow_domains and exclude_domains.",
        ),
        "feature.disabled": Reason(
            "nova.eval is switched off on this server.",
            "Use nova.perceive and the acting tools, or ask the operator to start Nova with --enable-eval.",
        ),
        "notes.user_owned": Reason(
            "The user or the operator wrote this note; agents don't change it.",
            "Write a note of your own, or ask a person.",
        ),
        "pks.builtin_platform": Reason(
            "The platform is built in and can't be changed.", "Add a platform of your own under another id."
        ),
        "policy.capability_missing": Reason(
            "The operator demands something of this service that no current fact shows.",
            "Look at the page and report what it shows with nova.ok_observe, or have policies.toml changed.",
        ),
        "policy.file_denied": Reason(
            "The file may not be opened.", "Ask the operator to allow its folder with browser.allow_file_roots."
        ),
        "policy.host_denied": Reason(
            "The host may not be opened.", "Ask the operator to allow it with browser.allow_hosts or deny_hosts."
        ),
        "policy.private_network": Reason(
            "The address lies in a private network, which may not be opened.",
            "Ask the operator to allow it with browser.private_network.",
        ),
        "policy.scheme_denied": Reason("Addresses of that scheme may not be opened.", "Give an http or https address."),
        "secret.host_mismatch": Reason(
            "The secret is not for this site.",
            "Open a site that the secret is for, or ask the person to add this one to its hosts.",
        ),
        "secret.insecure_origin": Reason(
            "The page is not encrypted, so the secret was not entered.", "Open the site over https."
        ),
        "upload.path_not_allowed": Reason(
            "The file is not in a folder that files may be uploaded from.",
            "Ask the person to put it into Nova's uploads folder, or to allow its folder in upload_roots.",
        ),
    }


class Killed(PolicyDenied):
    """The operator has switched commits, or applying what was learned, off: everywhere or on this site."""

    gate_id = "safety.kill_switch"
    reasons: ClassVar[Reasons] = {
        "guarded_commit.kill_switch_domain": Reason(
            "The operator has switched commits off on this site.", "Only a person can lift it, with nova kill clear."
        ),
        "guarded_commit.kill_switch_global": Reason(
            "The operator has switched commits off everywhere.", "Only a person can lift it, with nova kill clear."
        ),
        "pks.kill_switch": Reason(
            "The operator has switched applying what was learned off.",
            "Work by hand with nova.perceive and nova.click_selector; "
            "only a person can lift it, with `nova kill clear`.",
        ),
    }


class CapabilityMissing(PolicyDenied):
    """The operator demands something of a service that no current fact shows."""

    gate_id = "policy.capability"


class ClaimMismatch(NovaError):
    """Another agent is working on that tab."""

    error_code = -32040
    status = "blocked"
    reasons: ClassVar[Reasons] = {
        "claim.finalization_token_mismatch": Reason(
            "The finalizationToken is not the one of your claim.",
            "Use the token that nova.tab_claim returned; claiming again as the same agent returns it once more.",
        ),
        "claim.owner_mismatch": Reason(
            "Another agent is working on this tab.",
            "Open a tab of your own, wait for the lease to run out, or take it over: "
            "nova.tab_claim with reclaimReason.",
        ),
        "lcj.context_missing": Reason(
            "You hold no claim here, so nothing can be noted.",
            "Take one with nova.tab_claim. Work goes on without noting anything.",
        ),
    }


class ClaimHeld(ClaimMismatch):
    """A call that would change what another agent holds."""

    gate_id = "claim.owner"


class CoverageNotMet(NovaError):
    """Learn Mode keeps its work context until what it asked for is done."""

    error_code = -32041
    status = "blocked"
    reasons: ClassVar[Reasons] = {
        "learn.coverage_not_met": Reason(
            "Learn Mode has not covered what it asked for, so the claim stays.",
            "Cover the rest, or release with coverageExhausted and a reason.",
        ),
    }


class TooManyClaims(NovaError):
    """One owner holds as many claims as it may."""

    error_code = -32044
    reasons: ClassVar[Reasons] = {
        "claim.too_many": Reason(
            "You hold as many claims as you may.",
            "Release claims you no longer need with nova.tab_release; nova.tabs lists them.",
        ),
    }


class BudgetExhausted(NovaError):
    """A rate or a budget is spent."""

    error_code = -32029
    status = "blocked"
    reasons: ClassVar[Reasons] = {
        "budget.exhausted": Reason(
            "This session has used up its budget.",
            "Stop and report what was done; a person can raise the cap, and a pause begins a new session.",
        ),
        "rate.limited": Reason(
            "The calls or requests that are allowed are used up.",
            "Nothing ran. Wait for retryAfterMs, then call again.",
        ),
    }


class Internal(NovaError):
    """A defect of Nova; the log holds the details under the call id."""

    error_code = -32603
    reasons: ClassVar[Reasons] = {
        "internal": Reason(
            "Nova could not complete this call because of a defect of its own.",
            "The server's log has the details under the call's id.",
        ),
    }


class UnknownTool(Exception):
    """No tool has that name; answered as a protocol error with near matches."""

    def __init__(self, name: str, closest: tuple[str, ...]) -> None:
        near = f" Did you mean {', '.join(closest)}?" if closest else ""
        super().__init__(f'Unknown tool "{name[:80]}".{near} nova.tools_bundle lists every tool.')
        self.name = name
        self.closest = closest


FAMILIES: tuple[type[NovaError], ...] = (
    InvalidParams,
    NotFound,
    Precondition,
    Unavailable,
    Blocked,
    PolicyDenied,
    ClaimMismatch,
    CoverageNotMet,
    TooManyClaims,
    BudgetExhausted,
    Internal,
)
