"""The user's own notes from the command line, beside a running server."""

import json
from typing import Any

import pytest
from cli_kit import Folder, nova
from sqlalchemy import select, update
from typer.testing import Result

from nova_mcp.memory.notes.rules import HALF_LIFE_MS, expiry_for
from nova_mcp.memory.notes.tables import browser_memory, domain_note, operator_note

HOST = "shop.example.com"


def run(folder: Folder, *args: object, stdin: str | None = None) -> Result:
    return nova("notes", *args, "--data-dir", folder.path, stdin=stdin)


def listed(folder: Folder, *args: object) -> Any:
    done = run(folder, "list", *args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def rows(folder: Folder, table: Any) -> list[Any]:
    return list(folder.db.read_sync(lambda conn: conn.execute(select(table)).all()))


# -- Browser Memory


def test_a_memory_written_here_is_the_users(folder: Folder) -> None:
    (folder.path / "nova.toml").write_text('[notes.browser_memory]\nusers = ["local"]\n')
    done = run(folder, "add", "memory", " likes dark mode ", "--domain", f"https://{HOST}/x", "--type", "preference")
    assert (done.exit_code, done.stderr) == (0, "")
    [one] = listed(folder, "memory")["memory"]
    assert (one["content"], one["source"], one["principal"], one["domain"], one["memoryType"]) == (
        *("likes dark mode", "user"),
        *("local", HOST, "preference"),
    )
    again = run(folder, "add", "memory", "likes  dark mode", "--domain", HOST, "--type", "preference")
    assert again.stdout.startswith(f"Renewed: {one['memoryId']} ")


def test_it_is_said_when_nobody_will_see_a_memory(folder: Folder) -> None:
    done = run(folder, "add", "memory", "x1", "--domain", HOST, "--principal", "ada")
    assert done.exit_code == 0
    assert "off for ada" in done.stderr
    assert listed(folder, "--principal", "ada")["memory"][0]["principal"] == "ada"
    assert listed(folder, "--principal", "local")["memory"] == []


def test_a_memory_is_edited_and_becomes_the_users(folder: Folder) -> None:
    run(folder, "add", "memory", "old text", "--domain", HOST, "--url-pattern", "/cart")
    run(folder, "add", "memory", "taken", "--domain", HOST, "--url-pattern", "/cart")
    folder.db.write_sync(lambda conn: conn.execute(update(browser_memory).values(source="agent", expires_at_ms=1)))
    first, second = (row.memory_id for row in rows(folder, browser_memory))
    done = run(folder, "edit", "memory", first, "--text", "-", "--type", "context", stdin="new text\n")
    assert done.exit_code == 0, done.output
    row = next(row for row in rows(folder, browser_memory) if row.memory_id == first)
    assert (row.content, row.content_fold, row.memory_type, row.url_pattern) == (
        *("new text", "new text"),
        *("context", "/cart"),
    )
    assert (row.source, row.content_rev) == ("user", 2)
    assert row.expires_at_ms == expiry_for("context", 1.0, row.refreshed_at_ms)
    assert row.expires_at_ms - row.refreshed_at_ms > HALF_LIFE_MS["context"]
    clash = run(folder, "edit", "memory", first, "--text", "taken", "--type", "note")
    assert (clash.exit_code, "already" in clash.stderr) == (1, True)
    run(folder, "edit", "memory", second, "--url-pattern", "")
    assert next(row for row in rows(folder, browser_memory) if row.memory_id == second).url_pattern is None


def test_a_memory_is_forgotten_for_good(folder: Folder) -> None:
    run(folder, "add", "memory", "x1", "--domain", HOST, "--principal", "ada")
    [row] = rows(folder, browser_memory)
    assert run(folder, "delete", "memory", row.memory_id).stdout == f"Forgotten: {row.memory_id}.\n"
    assert rows(folder, browser_memory) == []
    for verb in ("delete", "edit"):
        gone = run(folder, verb, "memory", row.memory_id)
        assert (gone.exit_code, f"no memory {row.memory_id}" in gone.stderr) == (1, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("password: hunter2", "--domain", HOST), "looks like"),
        (("x1", "--domain", "co.uk"), "names no host"),
        (("x1", "--domain", "paypal.com"), "paypal.com"),
        (("x1", "--domain", HOST, "--type", "fact"), "memoryType"),
        (("x" * 2001, "--domain", HOST), "content"),
        (("x1", "--domain", HOST, "--url-pattern", "cart"), "urlPattern"),
        (("x1", "--domain", HOST, "--principal", "*"), "one principal"),
    ],
)
def test_what_no_tool_would_take_is_refused_here_too(folder: Folder, args: tuple[str, ...], words: str) -> None:
    done = run(folder, "add", "memory", *args)
    assert done.exit_code in (1, 2)
    assert words in done.stderr
    assert "hunter2" not in done.output
    assert rows(folder, browser_memory) == []


def test_a_stored_secret_gets_into_no_note(folder: Folder) -> None:
    secrets = folder.path / "secrets.toml"
    secrets.write_text('[shop]\nvalue = "correct-horse-battery"\nhosts = ["shop.test"]\n')
    secrets.chmod(0o600)
    done = run(folder, "add", "operator", "use correct-horse-battery there", "--tag", "shop")
    assert (done.exit_code, "stored secrets" in done.stderr) == (2, True)
    assert rows(folder, operator_note) == []


# -- Operator Notes


def test_a_rule_for_everybody_is_the_users(folder: Folder) -> None:
    done = run(folder, "add", "operator", "Check twice", "--tag", "Cart", "--tag", "cart", "--everybody")
    assert done.exit_code == 0, done.output
    [one] = listed(folder, "operator")["operator"]
    assert (one["principal"], one["source"], one["tags"], one["rev"]) == ("*", "user", ["Cart"], 1)
    own = run(folder, "add", "operator", "check TWICE", "--tag", "till")
    assert own.stdout.startswith("Created: ")
    assert {one["principal"] for one in listed(folder)["operator"]} == {"*", "local"}


def test_an_agents_rule_becomes_the_users_by_an_edit(folder: Folder) -> None:
    run(folder, "add", "operator", "Check twice", "--tag", "cart", "--category", "shop")
    folder.db.write_sync(lambda conn: conn.execute(update(operator_note).values(source="agent")))
    [before] = rows(folder, operator_note)
    done = run(folder, "edit", "operator", before.note_id, "--tag", "till")
    assert done.stdout == f"Updated: {before.note_id}, revision 2.\n"
    [one] = listed(folder)["operator"]
    assert (one["content"], one["tags"], one["category"], one["source"]) == ("Check twice", ["till"], "shop", "user")


def test_a_rule_is_deleted_whoever_wrote_it(folder: Folder) -> None:
    for source in ("user", "agent"):
        run(folder, "add", "operator", "Check twice", "--tag", "cart")
        folder.db.write_sync(lambda conn, who=source: conn.execute(update(operator_note).values(source=who)))
        [row] = rows(folder, operator_note)
        assert run(folder, "delete", "operator", row.note_id).exit_code == 0
        assert rows(folder, operator_note) == []
    for verb in ("delete", "edit"):
        assert run(folder, verb, "operator", "0" * 32).exit_code == 1


def test_without_a_name_all_notes_are_listed(folder: Folder) -> None:
    run(folder, "add", "memory", "prefers dark mode", "--domain", HOST)
    run(folder, "add", "operator", "Net prices only", "--tag", "prices")
    run(folder, "add", "domain", "Ask first", "--domain", HOST, "--key", "ORDERS")
    alone = run(folder)
    assert (alone.exit_code, alone.stdout) == (0, run(folder, "list").stdout)
    body = json.loads(run(folder, "--json").stdout)
    assert [body[kind][0][field] for kind, field in (("memory", "content"), ("operator", "content"))] == [
        "prefers dark mode",
        "Net prices only",
    ]
    assert body["domain"][0]["value"] == "Ask first"


def test_tables_show_both_kinds_and_nothing_that_steers_a_terminal(folder: Folder) -> None:
    empty = run(folder, "list")
    assert (empty.stdout, "no such notes" in empty.stderr) == ("", True)
    run(folder, "add", "memory", "dark \x1b[2J mode", "--domain", HOST)
    run(folder, "add", "operator", "y" * 200, "--tag", "cart")
    shown = run(folder, "list").stdout
    assert "\x1b" not in shown
    assert HOST in shown
    assert "cart" in shown
    assert "y" * 80 not in shown
    about = run(folder, "list", "--domain", HOST).stdout
    assert "cart" not in about


# -- Domain Notes


def test_a_note_for_every_agent_on_a_site_is_the_users(folder: Folder) -> None:
    args = (
        "--domain",
        f"www.{HOST}",
        "--key",
        "publish",
        "--enforcement",
        "block",
        "--repeat-minutes",
        5,
        "--everybody",
    )
    done = run(folder, "add", "domain", "Never press Publish", *args)
    assert done.exit_code == 0, done.output
    [one] = listed(folder, "domain")["domain"]
    assert (one["principal"], one["domain"], one["key"], one["source"], one["rev"]) == ("*", HOST, "publish", "user", 1)
    assert (one["enforcement"], one["repeatMinutes"], one["repeatToolCalls"]) == ("block", 5, None)
    own = run(folder, "add", "domain", "Ask first", "--domain", HOST, "--key", "publish")
    assert own.stdout.startswith("Created: publish")
    again = run(folder, "add", "domain", "Ask twice", "--domain", HOST, "--key", "publish")
    assert again.stdout.startswith("Updated: publish")
    assert {(one["principal"], one["value"]) for one in listed(folder, "--domain", HOST)["domain"]} == {
        ("*", "Never press Publish"),
        ("local", "Ask twice"),
    }


def test_a_note_about_a_site_is_edited_and_deleted_whoever_wrote_it(folder: Folder) -> None:
    run(
        folder,
        "add",
        "domain",
        "Old text",
        "--domain",
        HOST,
        "--key",
        "k",
        "--enforcement",
        "warn",
        "--principal",
        "ada",
    )
    folder.db.write_sync(lambda conn: conn.execute(update(domain_note).values(source="agent")))
    [before] = rows(folder, domain_note)
    assert run(folder, "edit", "domain", before.note_id, "--text", "New text").exit_code == 0
    [after] = rows(folder, domain_note)
    assert (after.value, after.enforcement, after.source, after.rev, after.principal) == (
        *("New text", "warn"),
        *("user", 2, "ada"),
    )
    assert run(folder, "delete", "domain", after.note_id).stdout == f"Deleted: k about {HOST}.\n"
    assert rows(folder, domain_note) == []
    for verb in ("edit", "delete"):
        assert run(folder, verb, "domain", after.note_id).exit_code == 1


@pytest.mark.parametrize(
    ("text", "args", "words"),
    [
        ("token=abc123", (), "looks like"),
        ("x" * 2001, ("--enforcement", "block"), "2000"),
        ("x1", ("--enforcement", "always"), "enforcement"),
        ("x1", ("--key", "a b"), "key"),
        ("x1", ("--repeat-minutes", 10_081), "repeatMinutes"),
        ("x1", ("--domain", "com"), "names no host"),
    ],
)
def test_a_note_about_a_site_has_the_limits_of_the_tool(
    folder: Folder, text: str, args: tuple[object, ...], words: str
) -> None:
    done = run(folder, "add", "domain", text, "--domain", HOST, "--key", "k", *args)
    assert done.exit_code == 2
    assert words in done.stderr
    assert rows(folder, domain_note) == []


def test_an_incomplete_playbook_is_taken_and_told(folder: Folder) -> None:
    done = run(folder, "add", "domain", "# Purpose", "--domain", HOST, "--key", "PLATFORM_PLAYBOOK")
    assert (done.exit_code, "missing or empty" in done.stderr) == (0, True)
