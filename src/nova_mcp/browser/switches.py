"""What Chromium is started with: quiet, and without parts that nobody looks at."""

from typing import Final

_QUIET: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# The driver switches these off itself; the browser hears only the last list, so ours has to name them again.
_OFF_BY_THE_DRIVER: Final = (
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning",
    "msEdgeUpdateLaunchServicesPreferredVersion",
    "msForceBrowserSignIn",
)
# Suggestions of the address bar are web pages of their own, two for every window, though headless windows show no bar.
_ADDRESS_BAR: Final = ("WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxPopup")
HEADLESS_FEATURES_OFF: Final = (*_OFF_BY_THE_DRIVER, *_ADDRESS_BAR)


def launch_args(*, headless: bool) -> tuple[str, ...]:
    if not headless:
        return _QUIET
    return (*_QUIET, "--disable-gpu", f"--disable-features={','.join(HEADLESS_FEATURES_OFF)}")
