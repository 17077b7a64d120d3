"""`nova stats`: the figures of agents, for people and for programs."""

import json

from cli_kit import Folder, nova

from nova_mcp.core.clock import SystemClock
from nova_mcp.memory.journal.model import Decision
from nova_mcp.memory.journal.statistics.counters import bump
from nova_mcp.memory.journal.statistics.counting import CandidateStand, of_candidate, of_decision


def filled(folder: Folder) -> Folder:
    now = SystemClock().now_ms()
    tally = (
        of_candidate(None, CandidateStand("consent", "verified"), now)
        + of_candidate(None, CandidateStand("x\x1b[2Jy", "unverified"), now)
        + of_decision(Decision("skip", "auto", "no_verified_candidates"), now)
    )
    folder.db.write_sync(bump, "s", tally)
    return folder


def test_people_get_the_figures_in_words(folder: Folder) -> None:
    done = nova("stats", "--data-dir", filled(folder).path)
    assert done.exit_code == 0, done.output
    assert "1 unverified, 1 verified, 0 disproven" in done.stdout
    assert "no_verified_candidates\t1" in done.stdout
    assert "rollout not ready: too_few_verified_actions" in done.stdout


def test_what_a_caller_named_a_component_does_not_steer_the_terminal(folder: Folder) -> None:
    assert "\x1b" not in nova("stats", "--data-dir", filled(folder).path).stdout


def test_programs_get_what_the_tool_answers(folder: Folder) -> None:
    done = nova("stats", "--data-dir", filled(folder).path, "--json", "--hours", 48, "--component", " CONSENT ")
    body = json.loads(done.stdout)
    assert (body["windowHours"], body["componentFilter"], body["lcj"]["candidatesTotal"]) == (48, "consent", 1)
    assert body["finalize"]["skipsWindow"] == 1


def test_a_window_beyond_what_is_kept_is_refused(folder: Folder) -> None:
    assert nova("stats", "--data-dir", folder.path, "--hours", 721).exit_code == 2


def test_without_a_store_it_says_so(folder: Folder) -> None:
    done = nova("stats", "--data-dir", folder.path / "elsewhere")
    assert done.exit_code == 1
    assert "no store" in done.stderr
