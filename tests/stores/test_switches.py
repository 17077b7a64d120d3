"""A switch that is set stops what it names, on the host it names and below, and nowhere else."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from nova_mcp.verification import kill_switches
from nova_mcp.verification.kill_switches import Switch, SwitchName, UnknownSwitch, parse_switch


def put(db, name, note=""):
    return db.write_sync(kill_switches.set_switch, Switch(parse_switch(name), 1_000, "operator", note))


def test_nothing_is_stopped_until_somebody_says_so(db):
    assert db.read_sync(kill_switches.switches) == []
    assert db.read_sync(kill_switches.commit_kill, "shop.test") is None


def test_the_global_switch_stops_commits_everywhere_and_clearing_lets_them_go(db):
    assert put(db, "closed_loop.commit.kill.global", "odd things happen")
    for host in ("shop.test", "127.0.0.1", "", None):
        assert db.read_sync(kill_switches.commit_kill, host) == "global"
    assert db.read_sync(kill_switches.apply_kill, "shop.test") is None
    assert db.write_sync(kill_switches.clear_switch, SwitchName("closed_loop.commit"))
    assert not db.write_sync(kill_switches.clear_switch, SwitchName("closed_loop.commit"))
    assert db.read_sync(kill_switches.commit_kill, "shop.test") is None


@pytest.mark.parametrize(
    ("scope", "host", "stopped"),
    [
        ("shop.test", "shop.test", True),
        ("shop.test", "pay.shop.test", True),
        ("shop.test", "SHOP.test.", True),
        ("shop.test", "myshop.test", False),
        ("shop.test", "shop.test.evil.example", False),
        ("pay.shop.test", "shop.test", False),
        ("Bücher.example", "xn--bcher-kva.example", True),
        ("127.0.0.1", "0x7f.1", True),
        ("127.0.0.1", "1.127.0.0.1", False),
        ("[::1]", "[0:0::1]", True),
        ("shop.test", None, False),
        ("shop.test", "", False),
        ("test", "shop.test", True),
    ],
)
def test_a_domain_switch_stops_its_host_and_those_below(db, scope, host, stopped):
    put(db, f"closed_loop.commit.kill.domain.{scope}")
    assert db.read_sync(kill_switches.commit_kill, host) == ("domain" if stopped else None)
    assert db.read_sync(kill_switches.apply_kill, host) is None


def test_the_families_are_stopped_apart(db):
    put(db, "apply.kill.domain.shop.test")
    assert db.read_sync(kill_switches.apply_kill, "shop.test") == "domain"
    assert db.read_sync(kill_switches.commit_kill, "shop.test") is None


def test_setting_twice_keeps_the_first_word_and_the_list_is_in_order(db):
    assert put(db, "closed_loop.commit.kill.global", "first")
    assert not put(db, "closed_loop.commit.kill.global", "second")
    put(db, "apply.kill.domain.b.test")
    put(db, "apply.kill.domain.a.test")
    listed = db.read_sync(kill_switches.switches)
    assert [str(one.name) for one in listed] == [
        "apply.kill.domain.a.test",
        "apply.kill.domain.b.test",
        "closed_loop.commit.kill.global",
    ]
    assert listed[2].note == "first"


def test_of_four_operators_that_set_it_at_once_one_did(store_url, open_db):
    bases = [open_db(store_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda base: put(base, "apply.kill.global"), bases))
    assert sum(done) == 1
    assert len(bases[0].read_sync(kill_switches.switches)) == 1


@pytest.mark.parametrize(
    "name",
    ["", "global", "commit.kill.global", "closed_loop.commit.kill", "closed_loop.commit.kill.domain.",
     "closed_loop.commit.kill.domain.a b", "closed_loop.commit.kill.domain.https://x.test", "apply.kill.site.x",
     "closed_loop.commit.kill.global.x", "closed_loop.commit.kill.domain.*.test"],
)  # fmt: skip
def test_a_name_nobody_listens_to_is_refused_with_the_ones_there_are(name):
    with pytest.raises(UnknownSwitch, match=r"closed_loop\.commit\.kill\.domain\.<host>"):
        parse_switch(name)
