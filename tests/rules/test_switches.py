"""What Chromium is started with."""

import re
from pathlib import Path

import playwright

from nova_mcp.browser.process.chromium_flags import HEADLESS_FEATURES_OFF, launch_args

DRIVER = Path(playwright.__file__).parent / "driver" / "package" / "lib" / "coreBundle.js"


def test_our_list_of_features_takes_nothing_back_that_the_driver_switches_off():
    source = DRIVER.read_text(encoding="utf-8")
    start = source.index("disabledFeatures = [")
    listed = re.sub(r"//.*", "", source[start : source.index("].filter", start)])
    theirs = set(re.findall(r'"([A-Za-z]+)"', listed))
    assert len(theirs) > 5
    assert theirs <= set(HEADLESS_FEATURES_OFF)


def test_a_window_that_somebody_sees_keeps_its_address_bar():
    (shown,) = [arg for arg in launch_args(headless=False) if arg.startswith("--disable-features=")]
    assert not [feature for feature in shown.split("=")[1].split(",") if "Omnibox" in feature]
    assert sum(arg.startswith("--disable-features=") for arg in launch_args(headless=True)) == 1
