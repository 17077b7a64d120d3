"""What Chromium is started with: quiet, and without parts that nobody looks at."""

from typing import Final

from playwright.async_api import ProxySettings

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
# Forms of visited pages are described to a server of the vendor, which answers with what their fields may mean.
_FORM_SERVER: Final = ("AutofillServerCommunication",)
FEATURES_OFF: Final = (*_OFF_BY_THE_DRIVER, *_FORM_SERVER)
HEADLESS_FEATURES_OFF: Final = (*FEATURES_OFF, *_ADDRESS_BAR)


def launch_args(*, headless: bool) -> tuple[str, ...]:
    if not headless:
        return (*_QUIET, f"--disable-features={','.join(FEATURES_OFF)}")
    return (*_QUIET, "--disable-gpu", f"--disable-features={','.join(HEADLESS_FEATURES_OFF)}")


def proxy_settings(port: int) -> ProxySettings:
    """Everything through the proxy, this machine's own addresses included."""
    return ProxySettings(server=f"socks5://127.0.0.1:{port}", bypass="<-loopback>")


def egress_args(port: int) -> tuple[str, ...]:
    """No way around the proxies of the sandboxes: what belongs to no sandbox has one too, and nothing goes over UDP."""
    return (
        f"--proxy-server=socks5://127.0.0.1:{port}",
        "--proxy-bypass-list=<-loopback>",
        # Names are resolved by the proxy alone; a lookup of the browser's own finds nothing.
        "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
        "--disable-quic",
        # Older and newer versions read one or the other.
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    )
