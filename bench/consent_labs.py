"""Consent banners that none of us wrote: how each is put on a page, and what it stores for which choice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

PACKAGES: Final[Mapping[str, str]] = {
    "klaro": "0.7.22",
    "cookieconsent": "3.1.1",
    "tarteaucitronjs": "1.34.0",
    "cookies-eu-banner": "3.0.0",
    "cookie-notice-js": "1.2.1",
    "bootstrap-cookie-alert": "1.2.2",
    "govuk-frontend": "6.6.0",
}

Stored = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Lab:
    """A banner on a page of its own. `refused` and `accepted` read the library's own cookie.

    A notice that only takes a yes can't be refused: there the right choice to store is none at all.
    """

    name: str
    package: str
    head: str
    body: str
    # What is visible of the library while it asks.
    banner: str
    refused: Stored
    accepted: Stored
    accept_only: bool = False
    lang: str = "en"


def _holds(*parts: str) -> Stored:
    return lambda cookie: any(part in unquote(cookie) for part in parts)


def _never(_: str) -> bool:
    return False


def _klaro(name: str, options: str, lang: str = "en") -> Lab:
    config = f"""{{ elementID: "klaro", storageMethod: "cookie", cookieName: "klaro", lang: "{lang}", {options}
      services: [{{ name: "counter", title: "Counter", purposes: ["analytics"] }},
                 {{ name: "ads", title: "Ads", purposes: ["advertising"], default: true }}] }}"""
    return Lab(
        name,
        "klaro",
        f'<script>var klaroConfig = {config};</script><script src="/klaro/dist/klaro.js" defer></script>',
        "",
        ".klaro .cookie-notice, .klaro .cm-modal",
        lambda cookie: '"counter":false' in unquote(cookie) and '"ads":false' in unquote(cookie),
        _holds('"counter":true', '"ads":true'),
        lang=lang,
    )


def _cookieconsent(name: str, options: str, *, accept_only: bool = False) -> Lab:
    return Lab(
        name,
        "cookieconsent",
        '<link rel="stylesheet" href="/cookieconsent/build/cookieconsent.min.css">'
        '<script src="/cookieconsent/build/cookieconsent.min.js"></script>',
        f"""<script>addEventListener("load", () => cookieconsent.initialise({{ {options}
          palette: {{ popup: {{ background: "#222" }}, button: {{ background: "#fc0" }} }} }}));</script>""",
        ".cc-window",
        _never if accept_only else _holds("cookieconsent_status=deny"),
        _holds("cookieconsent_status=allow", "cookieconsent_status=dismiss"),
        accept_only=accept_only,
    )


def _tarteaucitron(name: str, options: str, lang: str = "en") -> Lab:
    return Lab(
        name,
        "tarteaucitronjs",
        f'<script>var tarteaucitronForceLanguage = "{lang}"; var tarteaucitronForceCDN = "/tarteaucitronjs/";</script>'
        '<script src="/tarteaucitronjs/tarteaucitron.js"></script>',
        f"""<script>tarteaucitron.init({{ cookieName: "tarteaucitron", highPrivacy: true, adblocker: false,
          handleBrowserDNTRequest: false, removeCredit: true, showIcon: false, bodyPosition: "bottom",
          serviceDefaultState: "wait", showAlertSmall: false, mandatory: true, {options} }});
          tarteaucitron.services.counter = {{ key: "counter", type: "analytic", name: "Counter", uri: "", needConsent:
          true, cookies: [], js: () => {{}}, fallback: () => {{}} }};
          (tarteaucitron.job = tarteaucitron.job || []).push("counter");</script>""",
        "#tarteaucitronAlertBig, #tarteaucitron",
        _holds("!counter=false"),
        _holds("!counter=true"),
        lang=lang,
    )


_EU_BANNER: Final = Lab(
    "cookies-eu-banner",
    "cookies-eu-banner",
    '<script src="/cookies-eu-banner/dist/cookies-eu-banner.global.js"></script>',
    """<template id="cookies-eu-banner-template"><div id="cookies-eu-banner" style="padding:16px;background:#eee">
      By continuing to visit this site, you accept the use of cookies for statistical purposes.
      <button id="cookies-eu-reject">Reject</button> <button id="cookies-eu-accept">Accept</button></div></template>
    <script>CookiesEuBanner.createCookiesBanner({ onAccept: () => {} });</script>""",
    "#cookies-eu-banner",
    _holds("hasConsent=false"),
    _holds("hasConsent=true"),
)

_NOTICE: Final = Lab(
    "cookie-notice-js",
    "cookie-notice-js",
    '<script src="/cookie-notice-js/dist/cookie.notice.js"></script>',
    "",
    "#cookieNotice",
    _never,
    _holds("cookie_notice="),
    accept_only=True,
)

_ALERT: Final = Lab(
    "bootstrap-cookie-alert",
    "bootstrap-cookie-alert",
    '<link rel="stylesheet" href="/bootstrap-cookie-alert/cookiealert.css">',
    """<div class="alert text-center cookiealert" role="alert"><b>Do you like cookies?</b> We use cookies to ensure you
      get the best experience on our website. <button type="button" class="acceptcookies">I agree</button></div>
    <script src="/bootstrap-cookie-alert/cookiealert.js"></script>""",
    ".cookiealert.show",
    _never,
    _holds("acceptCookies=true"),
    accept_only=True,
)

# The package has markup and looks only; the site's own script stores the choice, as its documentation shows.
_GOVUK: Final = Lab(
    "govuk-frontend",
    "govuk-frontend",
    '<link rel="stylesheet" href="/govuk-frontend/dist/govuk/govuk-frontend.min.css">',
    """<div class="govuk-cookie-banner" data-nosnippet role="region" aria-label="Cookies on this service">
      <div class="govuk-cookie-banner__message govuk-width-container" id="asks"><h2 class="govuk-heading-m">Cookies</h2>
      <p class="govuk-body">We use some essential cookies. We'd also like to use analytics cookies.</p>
      <div class="govuk-button-group"><button type="button" class="govuk-button" value="yes">Accept analytics cookies
      </button><button type="button" class="govuk-button" value="no">Reject analytics cookies</button>
      <a class="govuk-link" href="/cookies">View cookies</a></div></div>
      <div class="govuk-cookie-banner__message govuk-width-container" id="thanks" role="alert" hidden>
      <p class="govuk-body">You've rejected analytics cookies.</p><div class="govuk-button-group">
      <button type="button" class="govuk-button" id="hide">Hide cookie message</button></div></div></div>
    <script>for (const button of document.querySelectorAll("#asks button")) button.onclick = () => {
        document.cookie = `cookies_policy=${button.value};path=/`; asks.hidden = true; thanks.hidden = false; };
      hide.onclick = () => document.querySelector(".govuk-cookie-banner").remove();
      document.body.prepend(document.querySelector(".govuk-cookie-banner"));</script>""",
    ".govuk-cookie-banner",
    _holds("cookies_policy=no"),
    _holds("cookies_policy=yes"),
)

LABS: Final[tuple[Lab, ...]] = (
    _klaro("klaro notice", ""),
    _klaro("klaro notice, German", "", "de"),
    _klaro("klaro modal", "mustConsent: true, acceptAll: true,"),
    _klaro("klaro, no decline button", "hideDeclineAll: true, acceptAll: true,"),
    _cookieconsent("cookieconsent opt-in", 'type: "opt-in",'),
    _cookieconsent("cookieconsent opt-in, top", 'type: "opt-in", position: "top", static: true,'),
    _cookieconsent("cookieconsent opt-out", 'type: "opt-out",'),
    _cookieconsent("cookieconsent info", 'type: "info",', accept_only=True),
    _tarteaucitron("tarteaucitron middle", 'orientation: "middle", DenyAllCta: true, AcceptAllCta: true'),
    _tarteaucitron("tarteaucitron bottom, French", 'orientation: "bottom", DenyAllCta: true, AcceptAllCta: true', "fr"),
    _tarteaucitron("tarteaucitron, no deny button", 'orientation: "bottom", DenyAllCta: false, AcceptAllCta: true'),
    _EU_BANNER,
    _NOTICE,
    _ALERT,
    _GOVUK,
)
