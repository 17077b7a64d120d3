"""Which controls send, buy, delete, sign in or otherwise commit something on a site."""

from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.browser.wording import Wording, commit_wording

CommitKind = Literal[
    "submit",
    "send",
    "auth",
    "payment",
    "delete",
    "confirm",
    "switch_model",
    "switch_sandbox",
    "dialog_accept",
]
Trigger = Literal["click", "enter"]
FormMethod = Literal["", "get", "post", "dialog"]

_SUGGESTED: Final[dict[CommitKind, str]] = {
    "submit": "nova.guarded_submit_form",
    "send": "nova.guarded_send_message",
    "auth": "nova.guarded_login",
    "switch_model": "nova.guarded_switch_model",
    "switch_sandbox": "nova.guarded_switch_sandbox",
}
_CLICK: Final = "nova.click_selector"

_BUTTON_ROLES: Final = frozenset({"button", "menuitem", "menuitemcheckbox", "menuitemradio"})
_BUTTON_TYPES: Final = frozenset({"submit", "image", "button", "reset"})
_OPTION_ROLES: Final = frozenset({"option", "menuitem", "menuitemradio"})


@dataclass(frozen=True, slots=True)
class FormFacts:
    """The form a control belongs to.

    `method` is empty unless written in the page; `posts_anyway` when the button overrules it.
    `search_names` are the names and labels of its text fields.
    """

    method: FormMethod = ""
    action: str = ""
    role_search: bool = False
    has_search_type: bool = False
    has_password: bool = False
    has_card: bool = False
    has_file: bool = False
    has_textarea: bool = False
    posts_anyway: bool = False
    search_names: tuple[str, ...] = ()

    @property
    def holds_input_of_weight(self) -> bool:
        return self.has_password or self.has_card or self.has_file or self.has_textarea


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What the live page says about a control and how it is about to be used.

    `is_link_href` means a real destination: an anchor whose href is empty, `#` or a script is a button.
    `near_composer` means beside a message box or, for Enter, inside one. `picker_label` names the list that an
    option belongs to.
    """

    tag: str
    role: str = ""
    type: str = ""
    name: str = ""
    id: str = ""
    testid: str = ""
    is_link_href: bool = False
    form: FormFacts | None = None
    submits: bool = False
    near_composer: bool = False
    picker_label: str = ""
    trigger: Trigger = "click"
    on_dialog_accept: bool = False


@dataclass(frozen=True, slots=True)
class CommitPoint:
    """A control that needs a contract, and why."""

    kind: CommitKind
    why: str
    suggested_tool: str


def _point(kind: CommitKind, why: str) -> CommitPoint:
    return CommitPoint(kind, why, _SUGGESTED.get(kind, _CLICK))


def is_search_form(form: FormFacts) -> bool:
    """Whether a form only asks the site for something."""
    if form.holds_input_of_weight:
        return False
    words = commit_wording()
    named = any(words.is_exactly("search_field", name) for name in form.search_names)
    return form.role_search or form.has_search_type or named


def submits_harmlessly(form: FormFacts) -> bool:
    """Search forms, forms that say they only get a page, and forms that only close their own dialog."""
    if form.posts_anyway:
        return False
    if is_search_form(form):
        return True
    if form.method == "dialog":
        return not form.holds_input_of_weight
    return form.method == "get" and bool(form.action) and not form.holds_input_of_weight


def _is_plain_link(facts: CommitFacts) -> bool:
    return facts.is_link_href and facts.role.lower() in ("", "link")


def _is_submit_control(facts: CommitFacts) -> bool:
    if facts.form is None:
        return False
    if facts.submits:
        return True
    kinds = {"button": ("", "submit"), "input": ("submit", "image")}.get(facts.tag.lower(), ())
    return facts.type.lower() in kinds


def _is_button(facts: CommitFacts) -> bool:
    tag = facts.tag.lower()
    if tag in ("button", "summary") or (tag == "input" and facts.type.lower() in _BUTTON_TYPES):
        return True
    return facts.role.lower() in _BUTTON_ROLES or (tag == "a" and not facts.is_link_href)


def _said(words: Wording, kind: str, facts: CommitFacts) -> str | None:
    """The phrase that a label says; a control without a label is known by its id."""
    if facts.name.strip():
        return words.find(kind, facts.name)
    return words.has_token(kind, facts.testid) or words.has_token(kind, facts.id)


def _named_delete(words: Wording, facts: CommitFacts) -> CommitPoint | None:
    phrase = _said(words, "delete", facts) or _said(words, "unsubscribe", facts)
    if phrase is None or words.starts("delete_exceptions", facts.name):
        return None
    return _point("delete", f'says "{phrase}"')


def _named_link(words: Wording, facts: CommitFacts) -> CommitPoint | None:
    phrase = _said(words, "sign_out", facts)
    if phrase is not None:
        return _point("auth", f'link says "{phrase}"')
    return _named_delete(words, facts)


def _sends(words: Wording, facts: CommitFacts) -> str | None:
    if not facts.near_composer:
        return None
    return words.find("send", facts.name) or words.has_token("send", facts.testid) or words.has_token("send", facts.id)


def _named_button(words: Wording, facts: CommitFacts) -> CommitPoint | None:
    phrase = _said(words, "payment", facts)
    if phrase is not None and not words.starts("payment_exceptions", facts.name):
        return _point("payment", f'says "{phrase}"')
    found = _named_delete(words, facts)
    if found is not None:
        return found
    said = (_said(words, kind, facts) for kind in ("sign_in", "sign_up", "sign_out"))
    phrase = next((phrase for phrase in said if phrase is not None), None)
    if phrase is not None:
        return _point("auth", f'says "{phrase}"')
    phrase = _sends(words, facts)
    if phrase is not None:
        return _point("send", f'says "{phrase}" beside a message box')
    return None


def _picks(words: Wording, facts: CommitFacts) -> CommitPoint | None:
    if facts.role.lower() not in _OPTION_ROLES and facts.tag.lower() != "option":
        return None
    if words.find("model_picker", facts.picker_label):
        return _point("switch_model", "chooses a model")
    if words.find("workspace_picker", facts.picker_label):
        return _point("switch_sandbox", "chooses a workspace")
    return None


def _submits(form: FormFacts | None, by: str) -> CommitPoint | None:
    if form is None or submits_harmlessly(form):
        return None
    if form.has_password:
        return _point("auth", f"{by} a form with a password field")
    return _point("submit", f"{by} a form")


def _by_enter(facts: CommitFacts) -> CommitPoint | None:
    if facts.near_composer:
        return _point("send", "Enter in a message box")
    if facts.tag.lower() == "textarea":
        return None
    return _submits(facts.form, "Enter submits")


def _by_click(words: Wording, facts: CommitFacts) -> CommitPoint | None:
    if _is_plain_link(facts):
        return _named_link(words, facts)
    picked = _picks(words, facts)
    if picked is not None:
        return picked
    button = _is_button(facts) or facts.is_link_href
    named = _named_button(words, facts) if button else None
    if named is not None:
        return named
    signs_in = _is_submit_control(facts) and facts.form is not None and facts.form.has_password
    phrase = _said(words, "confirm", facts) if button and not signs_in else None
    if phrase is not None:
        return _point("confirm", f'says "{phrase}"')
    if _is_submit_control(facts):
        return _submits(facts.form, "submits")
    phrase = _said(words, "submit", facts) if button else None
    if phrase is not None and (facts.form is None or not submits_harmlessly(facts.form)):
        return _point("submit", f'says "{phrase}"')
    return None


def classify_commit_point(facts: CommitFacts) -> CommitPoint | None:
    """The kind of commit a control stands for, or None; the most telling sign wins."""
    words = commit_wording()
    if facts.trigger == "enter" and not _is_button(facts) and not facts.is_link_href:
        found = _by_enter(facts)
    else:
        found = _by_click(words, facts)
    return accepts_dialogs() if found is None and facts.on_dialog_accept else found


def accepts_dialogs() -> CommitPoint:
    """Whatever the control is: a dialog that is accepted unread may confirm anything."""
    return _point("dialog_accept", "would accept a dialog")
