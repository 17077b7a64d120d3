"""Closed-loop acting, row by row of its contract, through a real client on a real page."""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from loop_kit import Server, Shop, serving, shop

from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.storage.engine import Database

pytestmark = pytest.mark.browser

COMMIT_FIELDS = {
    *("transitionId", "dispatchStatus", "verificationStatus", "indeterminateReason", "retryAdvice"),
    *("preconditionVerdict", "outcomeVerdict", "startedAt", "completedAt", "durationMs"),
}
BUTTONS = """<!doctype html><title>Buttons</title><main>
<button id="pay" type="button">Pay now</button><button id="fail" type="button">Buy it</button>
<button id="dead" type="button">Delete all</button><button id="hang" type="button">Order hanging</button>
<button id="later" type="button">Order later</button><button id="both" type="button">Confirm both</button>
<button id="plain" type="button">More</button><p id="count">0</p><p id="out"></p></main>
<script>
const send = (path) => fetch(path, { method: "POST" });
pay.onclick = async () => { await send("/api/pay"); out.textContent = "Paid"; };
fail.onclick = async () => { await send("/api/fails"); out.textContent = "Paid"; };
hang.onclick = () => { send("/api/hangs"); };
later.onclick = () => { setTimeout(() => { out.textContent = "Maybe"; }, 50); };
both.onclick = () => {
  out.textContent = "Paid";
  document.body.insertAdjacentHTML("beforeend", "<p id=no>Refused</p>");
};
plain.onclick = () => { count.textContent = Number(count.textContent) + 1; };
</script>"""
FORM = """<!doctype html><title>Order</title><form method="post" action="/order">
<label>Item <input name="item" required></label><button>Send order</button></form>"""
CHAT = """<!doctype html><title>Chat</title><main><div id="log" role="log"></div>
<div class="box"><textarea id="msg" aria-label="Message"></textarea>
<button id="send" type="button">Send</button></div></main>
<script>
send.onclick = async () => {
  const text = msg.value; msg.value = "";
  const mine = document.createElement("article"); mine.textContent = text; log.append(mine);
  await fetch("/api/chat", { method: "POST" });
  log.insertAdjacentHTML("beforeend", '<article aria-busy="true">I</article>');
  const reply = log.lastElementChild;
  for (let i = 0; i < 8; i += 1) { await new Promise((r) => setTimeout(r, 100)); reply.textContent += " think"; }
  reply.removeAttribute("aria-busy");
};
</script>"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def store() -> Iterator[Shop]:
    with shop() as running:
        running.pages.update({"/buttons": BUTTONS, "/form": FORM, "/chat": CHAT})
        yield running


@pytest.fixture(scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Server]:
    async with serving(tmp_path_factory.mktemp("nova")) as opened:
        yield opened


async def look_at(agent: Server, store: Shop, path: str) -> None:
    """A fresh document that the agent has seen; what earlier tests sent is long ago."""
    agent.clock.shift_ms += 60_000
    opened = await agent.call("navigate", url=store.url(path))
    assert opened["status"] == "ok"
    await agent.call("perceive")


@asynccontextmanager
async def agent_elsewhere(store: Shop) -> AsyncIterator[str]:
    """The same page on another site."""
    with shop() as other:
        other.pages.update(store.pages)
        yield other.url("/buttons")


def shows(text: str, **more: Any) -> dict[str, Any]:
    """A contract by which the text in #out decides."""
    return {"postconditions": {"success": {"all": [_out(text)]}}, "stabilityMs": 0, **more}


def _out(text: str) -> dict[str, Any]:
    return {"factKey": "dom.#out@text", "operator": "eq", "expected": text}


KEYS = itertools.count()


async def press(agent: Server, **arguments: Any) -> dict[str, Any]:
    """A click that is an intent of its own, whatever other tests left unclear."""
    return await agent.call("click_selector", **{"intentKey": f"own-{next(KEYS)}", **arguments})


def commit_of(answer: dict[str, Any]) -> dict[str, Any]:
    commit = dict(answer["guardedCommit"])
    assert set(commit) >= COMMIT_FIELDS
    assert commit["completedAt"] >= commit["startedAt"]
    assert commit["durationMs"] == commit["completedAt"] - commit["startedAt"]
    return commit


# -- failure and guard conditions ------------------------------------------------------------------------------------


async def test_commit_point_without_contract_is_blocked_before_dispatch(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    sent = store.posted["/api/pay"]
    answer = await press(agent, selector="#pay")
    assert (answer["status"], answer["errorCode"], answer["reasonCode"], answer["stage"]) == (
        "blocked",
        -32001,
        "guarded_commit.missing_contract",
        "guarded_commit_check",
    )
    assert answer["actionDispatched"] is False
    assert (answer["commitKind"], answer["suggestedTool"]) == ("payment", "nova.click_selector")
    assert answer["starterContract"]["postconditions"]
    assert store.posted["/api/pay"] == sent


async def test_the_fix_of_a_blocked_commit_runs_as_it_stands(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/form")
    await agent.call("type_selector", selector="input", text="a lamp")
    blocked = await press(agent, selector="button")
    fix = blocked["fix"]
    before = store.posted["/order"]
    answer = await agent.call(fix["tool"].removeprefix("nova."), **fix["args"])
    assert commit_of(answer)["verificationStatus"] == "verified_success"
    assert store.posted["/order"] == before + 1


async def test_enter_that_would_commit_is_blocked_before_anything_is_typed(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/form")
    answer = await agent.call("type_selector", selector="input", text="x", pressEnter=True)
    assert answer["reasonCode"] == "guarded_commit.missing_contract"
    assert answer["actionDispatched"] is False
    told = await agent.call("perceive")
    assert '="x"' not in " ".join(told["elements"])


@pytest.mark.parametrize(
    "contract",
    [
        {"surprise": 1},
        {"postconditions": {"success": {"all": [_out("x")]}, "maybe": {}}},
        {"postconditions": {"success": {"some": [_out("x")]}}},
        {"postconditions": {"success": {"all": [{**_out("x"), "extra": 1}]}}},
        {"preconditions": {"none": []}},
    ],
)
async def test_unknown_contract_fields_are_invalid_params(agent: Server, contract: dict[str, Any]) -> None:
    answer = await press(agent, selector="#pay", transitionContract=contract)
    assert (answer["errorCode"], answer["reasonCode"]) == (-32602, "invalid_params")


@pytest.mark.parametrize(
    ("key", "near"), [("form.fields.vaild", "form.fields.valid"), ("page.adress", "page."), ("nodots", "")]
)
async def test_an_unknown_fact_name_is_refused_with_near_matches(agent: Server, key: str, near: str) -> None:
    contract = {"postconditions": {"success": {"all": [{"factKey": key, "operator": "exists"}]}}}
    answer = await press(agent, selector="#pay", transitionContract=contract)
    assert answer["errorCode"] == -32602
    assert near in answer["message"]


@pytest.mark.parametrize("outcome", [{}, {"success": {}}, {"success": {"all": []}, "forbidden": {"any": []}}])
async def test_empty_postconditions_fail_closed_on_commit_points(
    agent: Server, store: Shop, outcome: dict[str, Any]
) -> None:
    await look_at(agent, store, "/buttons")
    before = store.posted["/api/pay"]
    answer = await press(agent, selector="#pay", transitionContract={"postconditions": outcome})
    assert answer["reasonCode"] == "guarded_commit.missing_contract"
    assert store.posted["/api/pay"] == before


async def test_precondition_failed_blocks_and_says_which(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    before = store.posted["/api/pay"]
    contract = shows("Paid", preconditions={"all": [{"factKey": "dom.#gift", "operator": "exists"}]})
    answer = await press(agent, selector="#pay", transitionContract=contract)
    assert (answer["errorCode"], answer["reasonCode"], answer["status"]) == (
        -32003,
        "guarded_commit.precondition_failed",
        "blocked",
    )
    commit = commit_of(answer)
    assert (commit["dispatchStatus"], commit["verificationStatus"], commit["preconditionVerdict"]) == (
        "blocked_precondition",
        "skipped",
        "failed",
    )
    (trace,) = commit["failedAssertions"]
    assert set(trace) == {"factKey", "op", "expected", "observed", "passed", "error"}
    assert (trace["factKey"], trace["op"], trace["passed"]) == ("dom.#gift", "exists", False)
    assert (answer["actionDispatched"], answer["retryAdvice"]) == (False, "safe_to_retry")
    assert store.posted["/api/pay"] == before


async def test_precondition_that_cannot_be_evaluated_fails_closed(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid", preconditions={"all": [{"factKey": "shop.open", "operator": "eq", "expected": True}]})
    answer = await press(agent, selector="#pay", transitionContract=contract)
    assert (answer["errorCode"], answer["reasonCode"]) == (-32003, "guarded_commit.precondition_error")
    commit = commit_of(answer)
    assert (commit["dispatchStatus"], commit["preconditionVerdict"]) == ("blocked_precondition", "unknown")
    assert commit["failedAssertions"][0]["error"] == "fact_not_found"
    assert answer["actionDispatched"] is False


async def test_coordinator_busy_while_another_guarded_action_runs(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    answers: list[dict[str, Any]] = []

    async def guarded(selector: str) -> None:
        contract = shows("Never", stabilityWindowMs=1500)
        answers.append(await press(agent, selector=selector, transitionContract=contract))

    async with anyio.create_task_group() as group:
        group.start_soon(guarded, "#dead")
        group.start_soon(guarded, "#later")
    busy = [one for one in answers if one["reasonCode"] == "guarded_commit.coordinator_busy"]
    assert len(busy) == 1
    assert (busy[0]["errorCode"], busy[0]["retryAfterMs"], busy[0]["actionDispatched"]) == (-32002, 1000, False)
    assert busy[0]["guardedCommit"]["dispatchStatus"] == "blocked_coordinator"


async def test_postcondition_failure_is_a_failed_call(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = {
        "postconditions": {
            "success": {"all": [_out("Paid")]},
            "forbidden": {"any": [{"factKey": "dom.#no", "operator": "exists"}]},
        }
    }
    answer = await press(agent, selector="#both", transitionContract=contract)
    assert (answer["status"], answer["errorCode"], answer["reasonCode"]) == (
        "failed",
        -32003,
        "guarded_commit.postcondition_failed",
    )
    commit = commit_of(answer)
    assert (commit["dispatchStatus"], commit["verificationStatus"], commit["outcomeVerdict"]) == (
        "dispatched",
        "verified_fail",
        "failed",
    )
    assert [trace["factKey"] for trace in commit["failedAssertions"]] == ["dom.#no"]
    assert (answer["verifyState"], answer["retryAdvice"]) == ("failed", "do_not_retry")


async def test_a_failed_response_is_forbidden_by_default(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    answer = await press(agent, selector="#fail", transitionContract=shows("Paid"))
    assert answer["reasonCode"] == "guarded_commit.postcondition_failed"
    assert commit_of(answer)["verificationStatus"] == "verified_fail"


async def test_a_response_the_contract_names_itself_is_judged_by_the_contract(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    answer = await press(agent, selector="#fail", expect=["response:POST /api/fails 5xx"])
    assert commit_of(answer)["verificationStatus"] == "verified_success"


async def test_an_ambiguous_result_is_partial(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid")
    contract["postconditions"]["ambiguous"] = {"any": [_out("Maybe")]}
    answer = await press(agent, selector="#later", transitionContract=contract)
    commit = commit_of(answer)
    assert (answer["status"], answer["reasonCode"]) == ("partial", "guarded_commit.ambiguous_signal")
    assert (commit["verificationStatus"], commit["indeterminateReason"]) == ("indeterminate", "ambiguous_signal")
    assert answer["retryAdvice"] == "check_postcondition_first"


async def test_no_signal_yet_says_what_was_seen(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid", stabilityWindowMs=500)
    answer = await press(agent, selector="#dead", transitionContract=contract)
    commit = commit_of(answer)
    assert (answer["status"], answer["reasonCode"]) == ("partial", "guarded_commit.no_signal_yet")
    assert commit["indeterminateReason"] == "no_signal_yet"
    assert commit["postconditionDiagnostics"]["unreadable"] == 0


async def test_a_pending_request_at_the_end_is_a_timeout(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid", stabilityWindowMs=500)
    answer = await press(agent, selector="#hang", transitionContract=contract)
    commit = commit_of(answer)
    assert answer["reasonCode"] == "guarded_commit.timeout"
    assert commit["postconditionDiagnostics"]["pendingRequests"] == ["POST /api/hangs"]


# -- retry policy and ambiguity policy ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "advice"),
    [("idempotent", "safe_to_retry"), ("non_idempotent", "check_postcondition_first"), ("no_retry", "do_not_retry")],
)
async def test_the_retry_policy_decides_the_advice_of_an_unclear_outcome(
    agent: Server, store: Shop, policy: str, advice: str
) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid", retryPolicy=policy, stabilityWindowMs=500)
    answer = await press(agent, selector="#dead", transitionContract=contract)
    assert answer["retryAdvice"] == commit_of(answer)["retryAdvice"] == advice


@pytest.mark.parametrize(
    ("policies", "advice"),
    [
        ({"ambiguityPolicy": "signal"}, "check_postcondition_first"),
        ({"ambiguityPolicy": "abort"}, "do_not_retry"),
        ({"ambiguityPolicy": "retry_once"}, "check_postcondition_first"),
        ({"ambiguityPolicy": "retry_once", "retryPolicy": "idempotent"}, "safe_to_retry"),
    ],
)
async def test_the_ambiguity_policy_decides_the_advice_of_an_ambiguous_outcome(
    agent: Server, store: Shop, policies: dict[str, str], advice: str
) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid", **policies)
    contract["postconditions"]["ambiguous"] = {"any": [_out("Maybe")]}
    answer = await press(agent, selector="#later", transitionContract=contract)
    assert answer["retryAdvice"] == advice


async def test_stability_values_out_of_bounds_are_clamped_not_refused(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid", stabilityWindowMs=1, stabilityMs=-5)
    answer = await press(agent, selector="#pay", transitionContract=contract)
    assert commit_of(answer)["verificationStatus"] == "verified_success"


# -- the short form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        ["text:Paid"],
        ["value:#note=", "text:Paid"],
        ["visible:#out"],
        ["gone:#nothing", "text:Paid"],
        ["url:/note", "text:Paid", "!text:Refused"],
        ["response:POST /api/pay 2xx"],
    ],
)
async def test_expect_proves_in_few_words(agent: Server, store: Shop, lines: list[str]) -> None:
    store.pages["/note"] = BUTTONS.replace("</main>", '<input id="note"></main>')
    await look_at(agent, store, "/note")
    answer = await press(agent, selector="#pay", expect=lines)
    assert commit_of(answer)["verificationStatus"] == "verified_success"


@pytest.mark.parametrize("lines", [[], ["x"] * 7, ["shout:x"], ["text:"], ["value:#a"], ["response:POST"], ["!"], [""]])
async def test_a_malformed_expectation_is_invalid_params(agent: Server, lines: list[str]) -> None:
    answer = await press(agent, selector="#pay", expect=lines)
    assert (answer["errorCode"], answer["reasonCode"]) == (-32602, "invalid_params")


async def test_contract_and_short_form_exclude_each_other(agent: Server) -> None:
    answer = await press(agent, selector="#pay", expect=["text:x"], transitionContract=shows("x"))
    assert answer["errorCode"] == -32602


# -- never twice by accident ----------------------------------------------------------------------------------------


async def test_a_verified_commit_is_not_repeated_unseen(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    before = store.posted["/api/pay"]
    first = await agent.call("click_selector", selector="#pay", expect=["text:Paid"])
    again = await agent.call("click_selector", selector="#pay", expect=["text:Paid"])
    assert first["verifyState"] == "verified"
    assert (again["errorCode"], again["reasonCode"], again["actionDispatched"]) == (
        -32003,
        "guarded_commit.duplicate_suspected",
        False,
    )
    assert (again["guardedCommit"]["dispatchStatus"], again["retryAdvice"]) == (
        "blocked_goal",
        "check_postcondition_first",
    )
    assert "intentKey" in again["hint"]
    assert store.posted["/api/pay"] == before + 1


@pytest.mark.parametrize("meant", ["looked", "key", "waited"])
async def test_a_repeat_that_is_meant_is_sent(agent: Server, store: Shop, meant: str) -> None:
    await look_at(agent, store, "/buttons")
    before = store.posted["/api/pay"]
    await agent.call("click_selector", selector="#pay", expect=["text:Paid"])
    if meant == "looked":
        await agent.call("perceive")
    elif meant == "waited":
        agent.clock.shift_ms += 11_000
    key = {"intentKey": "second"} if meant == "key" else {}
    again = await agent.call("click_selector", selector="#pay", expect=["text:Paid"], **key)
    assert again["actionDispatched"] is True
    assert store.posted["/api/pay"] == before + 2


async def test_an_unclear_commit_is_not_repeated_until_it_was_looked_at_and_named(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Paid", stabilityWindowMs=500)

    async def press(**more: Any) -> dict[str, Any]:
        return await agent.call("click_selector", selector="#dead", transitionContract=contract, **more)

    first = await press(intentKey="unclear")
    transition = first["guardedCommit"]["transitionId"]
    blind = await press(intentKey="unclear")
    assert blind["reasonCode"] == "guarded_commit.duplicate_suspected"
    named = await press(intentKey="unclear", retryOf=transition)
    assert named["reasonCode"] == "guarded_commit.duplicate_suspected"
    await agent.call("perceive")
    looked = await press(intentKey="unclear")
    assert looked["reasonCode"] == "guarded_commit.duplicate_suspected"
    retried = await press(intentKey="unclear", retryOf=transition)
    assert retried["actionDispatched"] is True


async def test_an_unclear_commit_that_turns_out_done_is_answered_without_sending(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    contract = shows("Maybe", stabilityWindowMs=500, stabilityMs=5000, retryPolicy="no_retry")
    contract["postconditions"]["success"]["all"] = [{"factKey": "dom.#late", "operator": "exists"}]
    store.pages["/late"] = BUTTONS.replace(
        "</script>",
        "dead.onclick = () => setTimeout(() => { out.id = 'late'; late.textContent = 'finished'; }, 900);</script>",
    )
    await look_at(agent, store, "/late")
    first = await agent.call("click_selector", selector="#dead", transitionContract=contract, intentKey="late")
    assert commit_of(first)["verificationStatus"] == "indeterminate"
    with anyio.fail_after(10):
        while "finished" not in (await agent.call("read_text"))["text"]:
            await anyio.lowlevel.checkpoint()
    again = await agent.call("click_selector", selector="#dead", transitionContract=contract, intentKey="late")
    assert (again["ok"], again["actionDispatched"], again["reasonCode"]) == (True, False, "guarded_commit.already_done")
    assert again["guardedCommit"]["resolvedFrom"] == first["guardedCommit"]["transitionId"]
    assert again["guardedCommit"]["verificationStatus"] == "verified_success"


async def test_an_error_that_stood_before_does_not_let_an_unclear_commit_go_again(agent: Server, store: Shop) -> None:
    store.pages["/alert"] = BUTTONS.replace("<main>", "<main><p role=alert>Old trouble</p>")
    await look_at(agent, store, "/alert")
    lines = ["text:Paid", "!visible:[role=alert]"]
    first = await agent.call("click_selector", selector="#dead", expect=lines, intentKey="alert")
    assert commit_of(first)["verificationStatus"] == "indeterminate"
    again = await agent.call("click_selector", selector="#dead", expect=lines, intentKey="alert")
    assert (again["reasonCode"], again["actionDispatched"]) == ("guarded_commit.duplicate_suspected", False)


async def test_a_retry_can_not_borrow_the_proof_of_another_commit(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    unclear = await agent.call(
        "click_selector", selector="#dead", expect=["gone:#nothing", "text:Never"], intentKey="lender"
    )
    named = unclear["guardedCommit"]["transitionId"]
    before = store.posted["/api/pay"]
    blind = await agent.call("click_selector", selector="#pay", expect=["text:Paid"], intentKey="x", retryOf=named)
    assert (blind["reasonCode"], store.posted["/api/pay"]) == ("guarded_commit.duplicate_suspected", before)
    async with agent_elsewhere(store) as other_site:
        await agent.call("navigate", url=other_site)
        await agent.call("perceive")
        foreign = await agent.call("click_selector", selector="#pay", expect=["text:Paid"], retryOf=named)
    assert foreign["reasonCode"] == "guarded_commit.dispatch_prepare_rejected"


async def test_text_that_was_typed_counts_as_touching_although_nothing_was_sent(agent: Server, store: Shop) -> None:
    store.pages["/shy"] = CHAT.replace("</script>", "msg.addEventListener('input', () => send.remove());</script>")
    await look_at(agent, store, "/shy")
    answer = await agent.call("guarded_send_message", text="hello there", timeoutMs=300)
    assert answer["ok"] is False
    assert answer["actionDispatched"] is True
    assert store.posted["/api/shy"] == 0


async def test_a_retry_of_nothing_is_refused(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    answer = await agent.call("click_selector", selector="#pay", expect=["text:Paid"], retryOf="tr_nothing")
    assert (answer["reasonCode"], answer["actionDispatched"]) == ("guarded_commit.dispatch_prepare_rejected", False)


ROWS = """<!doctype html><title>Invoices</title><main><div id="list">%s</div><p id="out" role="status"></p></main>
<script>document.querySelectorAll("form").forEach((form) => form.addEventListener("submit", async (event) => {
  event.preventDefault();
  await fetch("/api/pay/" + form.elements.id.value, { method: "POST" });
  out.textContent = "Invoice " + form.elements.id.value + " saved";
}));</script>"""
CARD = """<div class="card"><h3>Invoice %d</h3>
<form><input type="hidden" name="id" value="%d"><button>Pay</button></form></div>"""


async def test_rows_that_differ_only_in_what_stands_beside_them_are_commits_of_their_own(
    agent: Server, store: Shop
) -> None:
    store.pages["/rows"] = ROWS % "".join(CARD % (number, number) for number in (1, 2))
    await look_at(agent, store, "/rows")
    for number in (1, 2):
        answer = await agent.call("guarded_submit_form", selector="button", nth=number - 1)
        assert answer["actionDispatched"] is True
        assert store.posted[f"/api/pay/{number}"] == 1
    again = await agent.call("guarded_submit_form", selector="button", nth=1)
    assert (again["reasonCode"], store.posted["/api/pay/2"]) == ("guarded_commit.duplicate_suspected", 1)


@pytest.mark.parametrize("label", ["Delete account", "Pay 500 EUR"])
async def test_signing_in_presses_no_control_that_says_something_else(agent: Server, store: Shop, label: str) -> None:
    form = f"""<form method="post" action="/order"><input name="email" type="email" value="a@b.c">
    <input name="password" type="password" value="x1"><button>{label}</button></form>"""
    store.pages["/danger"] = f"<!doctype html><title>Account</title><h1>Account</h1>{form}"
    await look_at(agent, store, "/danger")
    before = store.posted["/order"]
    answer = await agent.call("guarded_login")
    assert (answer["ok"], store.posted["/order"]) == (False, before)


async def test_a_storm_of_dialogs_is_told_and_the_page_counts_as_touched(agent: Server, store: Shop) -> None:
    store.pages["/storm"] = (
        "<!doctype html><title>Storm</title><button id=b onclick='while(true)alert(1)'>More</button>"
    )
    await look_at(agent, store, "/storm")
    answer = await agent.call("click_selector", selector="#b")
    assert (answer["reasonCode"], answer["actionDispatched"]) == ("dialog.storm", True)


# -- the example ----------------------------------------------------------------------------------------------------


async def test_the_example_request_gives_the_example_answer(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/chat")
    started = {"factKey": "chat.streamActive.started", "operator": "eq", "expected": True}
    created = {"factKey": "chat.assistantTurnCreated", "operator": "eq", "expected": True}
    answer = await agent.call(
        "guarded_send_message",
        targetId="active",
        text="Please summarize the selected article.",
        transitionContract={"postconditions": {"success": {"any": [started, created]}}},
    )
    assert (answer["ok"], answer["status"], answer["actionDispatched"]) == (True, "ok", True)
    commit = commit_of(answer)
    assert {key: commit[key] for key in ("dispatchStatus", "verificationStatus", "retryAdvice", "outcomeVerdict")} == {
        "dispatchStatus": "dispatched",
        "verificationStatus": "verified_success",
        "retryAdvice": "do_not_retry",
        "outcomeVerdict": "satisfied",
    }
    assert store.posted["/api/chat"] == 1


# -- contract rows --------------------------------------------------------------------------------------------------


async def test_a_contract_works_on_controls_that_commit_nothing(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    for count in ("1", "2"):
        answer = await press(agent, selector="#plain", expect=[f"text:{count}"])
        assert commit_of(answer)["verificationStatus"] == "verified_success"


@pytest.mark.parametrize(
    ("assertion", "status"),
    [
        ({"factKey": "dom.#out@text", "operator": "eq", "expected": "Paid"}, "verified_success"),
        ({"factKey": "dom.#out@text", "operator": "not_eq", "expected": ""}, "verified_success"),
        ({"factKey": "dom.#out@text", "operator": "neq", "expected": ""}, "verified_success"),
        ({"factKey": "dom.#out@text", "operator": "contains", "expected": "ai"}, "verified_success"),
        ({"factKey": "network.responseOk@/api/pay", "operator": "exists"}, "verified_success"),
        ({"factKey": "network.responseOk@/api/pay", "operator": "gte", "expected": 200}, "verified_success"),
        ({"factKey": "network.responseOk@/api/pay", "operator": "lte", "expected": 200}, "verified_success"),
        ({"factKey": "network.responseOk@/api/pay", "operator": "gt", "expected": 199}, "verified_success"),
        ({"factKey": "network.responseOk@/api/pay", "operator": "lt", "expected": 300}, "verified_success"),
        ({"factKey": "dom.#absent", "operator": "exists"}, "indeterminate"),
        # Can't be evaluated, so nothing was sent.
        ({"factKey": "dom.#out@text", "operator": "eq", "expected": "Paid", "frameId": "nowhere"}, "skipped"),
    ],
)
async def test_each_operator_decides_as_the_contract_says(
    agent: Server, store: Shop, assertion: dict[str, Any], status: str
) -> None:
    await look_at(agent, store, "/buttons")
    contract = {"postconditions": {"success": {"all": [assertion]}}, "stabilityWindowMs": 1500, "stabilityMs": 0}
    answer = await press(agent, selector="#pay", transitionContract=contract)
    assert commit_of(answer)["verificationStatus"] == status


async def test_everything_stands_in_the_ledger_with_its_intent(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    answer = await press(agent, selector="#pay", expect=["text:Paid"])
    transition = answer["guardedCommit"]["transitionId"]
    with Database.open(f"sqlite:///{agent.data_dir / 'nova.db'}") as db:
        page = db.read_sync(events, EventFilter(limit=10_000))
        assert db.read_sync(lambda conn: list(verify(conn))) == []
    kept = [call.record for call in page.calls if call.record is not None]
    (intent,) = [record for record in kept if record.kind == "intent" and record.call_id == transition]
    (closing,) = [record for record in kept if record.closes == transition]
    assert (intent.effect, intent.outcome.kind, intent.tool_name) == ("commit", "pending", "nova.click_selector")
    assert (closing.outcome.action_dispatched, closing.outcome.verification) == (True, "verified")


async def test_a_receipt_can_be_read_by_its_address(agent: Server, store: Shop) -> None:
    await look_at(agent, store, "/buttons")
    answer = await press(agent, selector="#pay", expect=["text:Paid"])
    transition = answer["guardedCommit"]["transitionId"]
    assert transition in answer["receipt"]
    read = await agent.client.read_resource(f"nova://receipt/{transition}")
    assert "Paid" in str(read.contents[0])
