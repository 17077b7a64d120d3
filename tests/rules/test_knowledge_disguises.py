"""Words, hosts and selectors in disguise: what is not seen, what names everything, what belongs to everybody."""

import pytest

from nova_mcp.core.page.control_labels import ControlFacts, label_for
from nova_mcp.memory.knowledge.model import Alias, Platform, Problem, StableId
from nova_mcp.memory.knowledge.platforms.templates import Seeded, seeded
from nova_mcp.memory.knowledge.writes.content_rules import WHOLE_PAGE
from nova_mcp.memory.knowledge.writes.stability import breadth


@pytest.mark.parametrize("text", ["Ac\u200bcept all", "A\u00adccept all", "Accept\u2060 all", "\u202eAccept all"])
def test_what_is_not_seen_in_a_label_does_not_hide_what_it_says(text):
    assert label_for(ControlFacts(texts=(text,)), "consent") == "accept"


@pytest.mark.parametrize("selector", ["body:not(.x)", "HTML:has(p)", ":root:has(p)", "main:hover", "body::before"])
def test_the_whole_page_is_known_behind_any_state(selector):
    assert breadth(selector) in WHOLE_PAGE
    assert breadth("#box:not(.x)") is None


def vendor(host="cdn.vendor.example", name="Vendor"):
    return Platform(StableId("vendor"), name, aliases=(Alias("script_host", host),))


@pytest.mark.parametrize("host", ["com", "co.uk", "*", "localhost", "vendor.example/x y"])
def test_a_host_that_belongs_to_everybody_is_no_sign_of_a_vendor(host):
    assert isinstance(seeded(vendor(), ()), Seeded)
    problem = seeded(vendor(host), ())
    assert isinstance(problem, Problem)
    assert problem.code == "pks.selector_too_broad"


def test_the_name_of_a_platform_shows_all_that_it_says():
    problem = seeded(vendor(name="Vendor\U000e0041\u2066"), ())
    assert isinstance(problem, Problem)
