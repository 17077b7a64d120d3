"""Lists of hosts in the settings of notes: what can never match is refused, what can has one spelling."""

import pytest
from pydantic import ValidationError

from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS
from nova_mcp.settings import NoteSettings


def settings(**memory: object) -> NoteSettings:
    return NoteSettings.model_validate({"browser_memory": memory})


@pytest.mark.parametrize("entry", ["gov", "*.example.com", "", "a b"])
def test_an_exclusion_that_covers_nothing_is_refused(entry: str):
    with pytest.raises(ValidationError, match="covers no host"):
        settings(exclude_domains=[entry])


def test_exclusions_name_hosts_with_or_without_what_is_below_them():
    given = ("Example.com", "=example.com", ".gov")
    assert settings(exclude_domains=given).browser_memory.exclude_domains == given


def test_hosts_are_kept_in_one_spelling():
    allowed = settings(allow_domains=["WWW.Pay.Example.com", "pay.example.com"]).browser_memory.allow_domains
    assert allowed == ("pay.example.com",)
    tenants = NoteSettings.model_validate({"multi_tenant_domains": ["Slack.com"]}).multi_tenant_domains
    assert tenants == ("slack.com",)
    assert set(NoteSettings().multi_tenant_domains) == MULTI_TENANT_DOMAINS


@pytest.mark.parametrize("name", ["allow_domains", "multi_tenant_domains"])
def test_what_names_no_host_is_refused(name: str):
    with pytest.raises(ValidationError, match="is not a host"):
        NoteSettings.model_validate({name: ["co.uk"]} if name[0] == "m" else {"browser_memory": {name: ["co.uk"]}})


@pytest.mark.parametrize(("days", "fits"), [(-1, False), (0, True), (365, True), (366, False)])
def test_faded_rows_are_kept_up_to_a_year(days: int, fits: bool):
    if fits:
        assert settings(retention_days=days).browser_memory.retention_days == days
    else:
        with pytest.raises(ValidationError):
            settings(retention_days=days)


def test_nothing_is_remembered_for_anybody_unless_it_is_set():
    assert NoteSettings().browser_memory.users == ()
