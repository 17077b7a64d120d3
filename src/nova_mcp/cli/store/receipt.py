"""`nova receipt`: the proof of one commit, for the person who asks what really happened."""

import json as text_json
from typing import Annotated

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import EXIT_FAILED, fail, moment, on_terminal, print_json, say, visible
from nova_mcp.verification.receipts import Receipt, ReceiptRequest, receipt_to_json
from nova_mcp.verification.store import find_transition, last_dispatched

app = typer.Typer(add_completion=False)

LAST = "last"
_VERDICTS = {
    "verified_success": "verified: the page confirmed it",
    "verified_fail": "failed: it was seen that it did not work",
    "indeterminate": "undecided: neither success nor failure could be proven",
    "skipped": "nothing was sent",
    "pending": "still in flight, or its server ended without a word",
}
_COLOURS = {"verified_success": "green", "verified_fail": "red", "indeterminate": "yellow"}


@app.command()
def receipt(
    which: Annotated[str, typer.Argument(metavar="[last|ID]", help="A transition id, or the last commit.")] = LAST,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show the proof of a commit: what was sent, what came back, what the page showed."""
    with opened(read_settings(data_dir, store)) as database:
        if which == LAST:
            found = database.read_sync(last_dispatched)
        else:
            found = database.read_sync(find_transition, None, which)
    if found is None:
        missing = "no guarded action was dispatched yet" if which == LAST else f"there is no receipt {which}"
        fail(missing, "answers of guarded actions name theirs as guardedCommit.transitionId", EXIT_FAILED)
    proof = found.as_receipt()
    if json:
        print_json(text_json.loads(receipt_to_json(proof)))
        return
    lines = [f"{name:<9} {visible(value)}" for name, value in _lines(proof)]
    if not on_terminal():
        for line in (f"receipt   {visible(proof.transition_id)}", *lines):
            say(line)
        return
    colour = _COLOURS.get(proof.verdict, "none")
    Console().print(
        Panel(Text("\n".join(lines)), title=Text(f"receipt {visible(proof.transition_id)}"), border_style=colour)
    )


def _lines(proof: Receipt) -> list[tuple[str, str]]:
    why = "" if proof.reason is None else f" ({proof.reason})"
    lines = [("verdict", _VERDICTS[proof.verdict] + why)]
    lines.append(("action", " ".join(part for part in (proof.tool, proof.element) if part)))
    lines.append(("began", moment(proof.started_at_ms)))
    if proof.completed_at_ms is not None:
        lines.append(("decided", f"{moment(proof.completed_at_ms)} after {proof.duration_ms} ms"))
    if proof.url_before:
        moved = proof.url_after and proof.url_after != proof.url_before
        lines.append(("page", f"{proof.url_before} → {proof.url_after}" if moved else proof.url_before))
    lines += [("sent", _sent(request)) for request in proof.requests]
    lines += [("appeared", text) for text in proof.appeared]
    lines += [("agreed", line) for line in proof.contract]
    for name, picture in (("before", proof.picture_before), ("after", proof.picture_after)):
        if picture is not None:
            lines.append((name, f"nova://screenshot/{picture}"))
    return lines


def _sent(request: ReceiptRequest) -> str:
    return f"{request.method} {request.url} → {'no answer seen' if request.status is None else request.status}"
