"""Secrets: usable only at their own hosts over a private line, taken only from private places, shown nowhere."""

import base64
import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.calls.answer_redaction import redacted_answer, redacted_resource
from nova_mcp.calls.model import Answer, ResourceContent
from nova_mcp.cli.serving.serve import parser, settings_tree
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, PolicyDenied
from nova_mcp.secrets.model import Refused, Secret, Usable
from nova_mcp.secrets.redactor import Redactor
from nova_mcp.secrets.rules import UnreadableSecrets, folded, judge_secret, read_entries, read_variables
from nova_mcp.secrets.store import FILE_NAME, SecretStore, system_keyring
from nova_mcp.server.http.serve import served_settings
from nova_mcp.settings import Settings, load_settings, secret_variables
from nova_mcp.tools.spec import compact

SHOP = Secret("shop", "hunter2/ä pass", ("shop.example", "*.login.example", "localhost", "127.0.0.1"))


def judged(top: str, frame: str | None = None, secret: Secret = SHOP) -> str:
    verdict = judge_secret(secret, top, frame or top)
    return verdict.reason_code if isinstance(verdict, Refused) else "usable"


# -- where a secret may be typed


@pytest.mark.parametrize(
    ("top", "frame", "verdict"),
    [
        ("https://shop.example/login", None, "usable"),
        ("https://SHOP.example:8443/login", None, "usable"),
        ("https://a.login.example/", None, "usable"),
        ("https://login.example/", None, "secret.host_mismatch"),
        ("https://shop.example.evil.test/", None, "secret.host_mismatch"),
        ("https://evil-shop.example/", None, "secret.host_mismatch"),
        ("https://shop.example@evil.test/", None, "secret.host_mismatch"),
        ("https://evil.test/", "https://shop.example/login", "secret.host_mismatch"),
        ("https://shop.example/", "https://evil.test/frame", "secret.host_mismatch"),
        ("https://shop.example/", "https://a.login.example/", "usable"),
        ("http://shop.example/login", None, "secret.insecure_origin"),
        ("https://shop.example/", "http://shop.example/frame", "secret.insecure_origin"),
        ("http://localhost:8000/", None, "usable"),
        ("http://127.0.0.1:8000/", "http://localhost:1/", "usable"),
        ("about:blank", None, "secret.host_mismatch"),
        ("https://shop.example/", "about:srcdoc", "secret.host_mismatch"),
        ("data:text/html,x", None, "secret.host_mismatch"),
        ("blob:https://shop.example/1", None, "secret.host_mismatch"),
        ("file:///shop.example", None, "secret.host_mismatch"),
        ("", None, "secret.host_mismatch"),
    ],
)
def test_page_and_frame_must_both_be_the_secrets_own_and_private(top: str, frame: str | None, verdict: str) -> None:
    assert judged(top, frame) == verdict


def test_a_secret_without_hosts_is_usable_nowhere() -> None:
    verdict = judge_secret(replace(SHOP, hosts=()), "https://shop.example/", "https://shop.example/")
    assert isinstance(verdict, Refused)
    assert verdict.reason_code == "secret.host_mismatch"
    assert "hosts" in verdict.hint


def test_a_refusal_is_an_error_of_policy_that_never_names_the_value() -> None:
    verdict = judge_secret(SHOP, "https://evil.test/", "https://evil.test/")
    assert isinstance(verdict, Refused)
    error = verdict.error()
    assert isinstance(error, PolicyDenied)
    assert (error.error_code, error.status) == (-32035, "blocked")
    assert SHOP.value not in f"{error.message}{error.hint}{SHOP!r}"


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_address_breaks_the_judgement(top: str, frame: str) -> None:
    assert isinstance(judge_secret(SHOP, top, frame), Usable | Refused)


# -- where secrets come from


def write_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / FILE_NAME
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


TABLE = '[shop]\nvalue = "from the file"\nhosts = ["shop.example"]\n'


async def test_the_file_goes_before_the_keyring_and_the_keyring_before_the_environment(tmp_path: Path) -> None:
    write_file(tmp_path, TABLE + '[ring]\nhosts = ["ring.example"]\n["env-only.x"]\nhosts = ["env.example"]\n')
    variables = {f"NOVA_SECRET_{name}": f"{name} of the environment" for name in ("SHOP", "RING", "ENV_ONLY_X", "BARE")}
    asked: list[str] = []

    def keyring(name: str) -> str | None:
        asked.append(name)
        return "from the keyring" if name in ("shop", "ring") else None

    store = SecretStore(tmp_path, variables | {"NOVA_SECRET_BARE_HOSTS": "bare.example, *.bare.example"}, keyring)
    found = {name: await store.find(name) for name in ("shop", "ring", "env-only.x", "bare")}
    assert {name: (secret.value, secret.hosts) for name, secret in found.items()} == {
        "shop": ("from the file", ("shop.example",)),
        "ring": ("from the keyring", ("ring.example",)),
        "env-only.x": ("ENV_ONLY_X of the environment", ("env.example",)),
        "bare": ("BARE of the environment", ("bare.example", "*.bare.example")),
    }
    assert "shop" not in asked
    assert store.names() == ("BARE", "ENV_ONLY_X", "RING", "SHOP", "env-only.x", "ring", "shop")


async def test_an_unknown_name_says_where_a_secret_could_be_put(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        await SecretStore(tmp_path).find("my.login")
    assert (caught.value.reason_code, caught.value.error_code) == ("secret.not_found", -32004)
    assert "NOVA_SECRET_MY_LOGIN" in caught.value.hint


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
async def test_a_file_that_others_can_read_is_refused_until_it_is_private(tmp_path: Path, mode: int, caplog) -> None:
    path = write_file(tmp_path, TABLE, mode)
    store = SecretStore(tmp_path)
    with pytest.raises(NotFound) as caught:
        await store.find("shop")
    assert "chmod 600" in caught.value.message
    assert len(caplog.records) == 1
    path.chmod(0o600)
    assert (await store.find("shop")).value == "from the file"
    assert store.problem is None


@pytest.mark.parametrize(
    "text",
    [
        "value = 'hunter2'",
        "[a]\nvalue = 'hunter2'\nhost = ['x.example']",
        "[a]\nvalue = 42",
        "[a]\nvalue = ''",
        "[a]\nvalue = 'hunter2'\nhosts = ['not a host']",
        "[a]\nvalue = 'hunter2'\nhosts = ['hunter2 x']",
        "['a b']\nvalue = 'hunter2'",
        "[a]\nvalue = 'hunter2",
        "\x00",
    ],
)
async def test_a_file_that_makes_no_sense_is_refused_without_quoting_it(tmp_path: Path, text: str, caplog) -> None:
    write_file(tmp_path, text)
    store = SecretStore(tmp_path)
    assert store.problem
    with pytest.raises(NotFound) as caught:
        await store.find("a")
    for told in (store.problem, caught.value.message, caplog.text):
        assert "hunter2" not in told


async def test_a_link_is_no_secrets_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / FILE_NAME).symlink_to(write_file(tmp_path / "elsewhere", TABLE))
    with pytest.raises(NotFound):
        await SecretStore(tmp_path).find("shop")


async def test_an_edited_file_counts_at_once_and_the_old_value_stays_hidden(tmp_path: Path) -> None:
    write_file(tmp_path, TABLE)
    store = SecretStore(tmp_path)
    write_file(tmp_path, TABLE.replace("from the file", "another value entirely"))
    assert (await store.find("shop")).value == "another value entirely"
    assert store.redactor.text("from the file, another value entirely") == "«secret:shop», «secret:shop»"
    write_file(tmp_path, "nonsense")
    with pytest.raises(NotFound):
        await store.find("shop")
    assert store.redactor.text("another value entirely") == "«secret:shop»"


def test_variables_are_read_by_names_a_shell_can_spell() -> None:
    assert folded("shop.login-2") == "SHOP_LOGIN_2"
    found = read_variables({"NOVA_SECRET_A": "1", "NOVA_SECRET_A_HOSTS": "a.example,,no host", "NOVA_SECRET_B": ""})
    assert found == {"A": Secret("A", "1", ("a.example",), "environment")}
    assert secret_variables({"NOVA_SECRET_X": "1", "NOVA_TOOLS": "all"}) == {"NOVA_SECRET_X": "1"}


def test_a_name_that_is_no_name_is_refused() -> None:
    with pytest.raises(UnreadableSecrets):
        read_entries({"a" * 65: {"value": "x"}})


def test_without_its_package_the_keyring_knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nova_mcp.secrets.store.find_spec", lambda name: None)
    assert system_keyring()("shop") is None


# -- what leaves


def spellings(value: str) -> list[str]:
    raw = value.encode()
    inside = [base64.b64encode(b"x" * pad + raw + b"y" * 5).decode() for pad in range(3)]
    return [
        value,
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        re.sub(r"%[0-9A-F]{2}", lambda byte: byte.group().lower(), quote(value, safe="")),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        *inside,
    ]


@given(st.text(st.characters(codec="utf-8"), min_size=4, max_size=24), st.text(max_size=20), st.text(max_size=20))
def test_no_spelling_of_a_secret_passes(value: str, before: str, after: str) -> None:
    redactor = Redactor([Secret("s", value)])
    for spelled in spellings(value):
        clean = redactor.text(f"{before}{spelled}{after}")
        assert "«secret:s»" in clean


@given(st.text(max_size=200))
def test_text_without_a_secret_is_left_alone(text: str) -> None:
    redactor = Redactor([Secret("s", "quite unlikely to be generated")])
    assert redactor.text(text) == text


def test_answers_are_clean_in_both_forms() -> None:
    redactor = Redactor([SHOP, Secret("pin", "482913")])
    body: dict[str, Json] = {
        "text": f"you typed {SHOP.value}",
        "list": [{"url": f"https://x.example/?q={quote(SHOP.value)}"}, 482913, 4829130, True, None],
        f"key {SHOP.value}": {"deep": base64.b64encode(SHOP.value.encode()).decode()},
    }
    clean = redacted_answer(Answer(body, f"line: {SHOP.value}"), redactor)
    assert clean.text == "line: «secret:shop»"
    assert clean.structured == {
        "text": "you typed «secret:shop»",
        "list": [{"url": "https://x.example/?q=«secret:shop»"}, "«secret:pin»", 4829130, True, None],
        "key «secret:shop»": {"deep": "«secret:shop»"},
    }


def test_a_text_that_is_json_stays_json() -> None:
    body: dict[str, Json] = {"value": 482913, "text": 'a "quoted" 482913'}
    clean = redacted_answer(Answer(body, compact(body)), Redactor([Secret("pin", "482913")]))
    assert json.loads(clean.text) == clean.structured == {"value": "«secret:pin»", "text": 'a "quoted" «secret:pin»'}


def test_without_secrets_an_answer_is_not_touched() -> None:
    answer = Answer({"a": 1}, "a")
    assert redacted_answer(answer, Redactor()) is answer
    assert redacted_answer(answer, Redactor([Secret("short", "abc")])) is answer


def test_what_was_stored_before_a_secret_became_known_is_clean_when_read() -> None:
    redactor = Redactor([SHOP])
    assert redacted_resource(ResourceContent("u", "t", text=SHOP.value), redactor).text == "«secret:shop»"
    assert redacted_resource(ResourceContent("u", "t", data=b"x"), redactor).data == b"x"


# -- settings


def test_uploads_come_from_two_folders_of_nova_unless_the_person_names_others(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert settings.upload_roots == (tmp_path / "downloads", tmp_path / "uploads")
    named = load_settings({"data_dir": tmp_path}, {"NOVA_BROWSER_UPLOAD_ROOTS": "/a,/b"})
    assert named.upload_roots == (Path("/a"), Path("/b"))
    assert load_settings({"data_dir": tmp_path}, {"NOVA_BROWSER_UPLOAD_ROOTS": ""}).upload_roots == ()


def test_persistence_is_undecided_until_somebody_decides(tmp_path: Path) -> None:
    assert load_settings({"data_dir": tmp_path}, {}).browser.ephemeral is None
    assert load_settings({"data_dir": tmp_path}, {"NOVA_BROWSER_EPHEMERAL": "true"}).browser.ephemeral is True


def test_over_http_nothing_is_kept_unless_somebody_asks_for_it(tmp_path: Path) -> None:
    undecided = load_settings({"data_dir": tmp_path}, {})
    assert served_settings(undecided, 7).browser.ephemeral is True
    asked = settings_tree(vars(parser("nova serve").parse_args(["--no-ephemeral"])))
    assert served_settings(load_settings({"data_dir": tmp_path, **asked}, {}), 7).browser.ephemeral is False
    forgetful = settings_tree(vars(parser("nova serve").parse_args(["--ephemeral"])))
    assert load_settings({"data_dir": tmp_path, **forgetful}, {}).browser.ephemeral is True


def test_logging_does_not_hide_the_kind_of_problem(tmp_path: Path, caplog) -> None:
    with caplog.at_level(logging.ERROR):
        write_file(tmp_path, TABLE, 0o644)
        SecretStore(tmp_path)
    assert "0644" in caplog.text
