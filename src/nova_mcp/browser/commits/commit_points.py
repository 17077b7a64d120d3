"""Which controls send, buy, delete, sign in or otherwise commit something on a site."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from nova_mcp.browser.commits.commit_words import MIXED, CommitWords, commit_words

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
# `fill` is text or files put into a field whose own script submits its form.
Trigger = Literal["click", "enter", "fill"]
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
# What a form says of itself when its button says nothing; the more dangerous first.
_WEIGHTY: Final[tuple[tuple[str, CommitKind], ...]] = (
    ("payment", "payment"),
    ("delete", "delete"),
    ("unsubscribe", "delete"),
)


@dataclass(frozen=True, slots=True)
class FormFacts:
    """The form a control belongs to.

    `method` is empty unless written in the page; `posts_anyway` when the button overrules it.
    `search_names` are the names and labels of its text fields, `headings` what it is called, `addresses` the
    identifiers it goes by: where it leads, its id, the method that hides in a field. `button` is what its own button
    reads: Enter presses that one.
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
    headings: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    button: tuple[str, ...] = ()

    @property
    def holds_input_of_weight(self) -> bool:
        return self.has_password or self.has_card or self.has_file or self.has_textarea


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What the live page says about a control and how it is about to be used.

    `is_link_href` means a real destination: an anchor whose href is empty, `#` or a script is a button.
    `readings` are what it reads besides its name: drawn text, tips, values, labels, texts of pictures.
    `near_composer` means beside a message box or, for Enter, inside one that sends. `near_card` means beside the
    number of a card. `picker_label` names the list that an option belongs to, `question` the dialog around a control.
    `changes` when markup says that pressing it sends something other than a question for a page.
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
    readings: tuple[str, ...] = ()
    question: str = ""
    near_card: bool = False
    changes: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """All that it reads, its name first."""
        return tuple(text for text in (self.name, *self.readings) if text.strip())


@dataclass(frozen=True, slots=True)
class CommitPoint:
    """A control that needs a contract, and why. `reads` is the text that makes it one where that is not its name."""

    kind: CommitKind
    why: str
    suggested_tool: str
    reads: str = ""


@dataclass(frozen=True, slots=True)
class _Said:
    """A phrase, and the text it stands in where that is not the name."""

    phrase: str
    reads: str = ""


def _point(kind: CommitKind, why: str, reads: str = "") -> CommitPoint:
    return CommitPoint(kind, why, _SUGGESTED.get(kind, _CLICK), reads)


def _worded(kind: CommitKind, said: _Said, beside: str = "") -> CommitPoint:
    what = "reads" if said.reads else "says"
    other = ", which its name does not" if said.reads else ""
    return _point(kind, f'{what} "{said.phrase}"{beside}{other}', said.reads)


# -- forms


def is_search_form(form: FormFacts) -> bool:
    """Whether a form only asks the site for something: it says so by its role, or it is no more than a question."""
    if form.holds_input_of_weight or _calls_itself(form) is not None:
        return False
    if form.role_search:
        return True
    if form.method not in ("", "get"):
        return False
    words = commit_words()
    named = any(words.is_exactly("search_field", name) for name in form.search_names)
    return form.has_search_type or named


def submits_harmlessly(form: FormFacts) -> bool:
    """Search forms, forms that say they only get a page, and forms that only close their own dialog."""
    if form.posts_anyway or _calls_itself(form) is not None:
        return False
    if is_search_form(form):
        return True
    if form.method == "dialog":
        return not form.holds_input_of_weight
    return form.method == "get" and bool(form.action) and not form.holds_input_of_weight


def _calls_itself(form: FormFacts) -> CommitPoint | None:
    """What a form is for by its name and its address, if that weighs."""
    words = commit_words()
    for kind, commit in _WEIGHTY:
        for heading in form.headings:
            if (phrase := words.find(kind, heading)) is not None:
                return _point(commit, f'submits a form called "{phrase}"')
    for address in form.addresses:
        if (token := words.has_token("address", address)) is not None:
            return _point("confirm", f'submits a form that leads to "{token}"')
    return None


def _submits(form: FormFacts | None, by: str) -> CommitPoint | None:
    if form is None or submits_harmlessly(form):
        return None
    if form.has_card:
        return _point("payment", f"{by} a form with a payment field")
    if form.has_password:
        return _point("auth", f"{by} a form with a password field")
    calls = _calls_itself(form)
    if calls is not None and form.method != "post":
        return calls
    return _point("submit", f"{by} a form")


# -- what kind of control


def _is_plain_link(facts: CommitFacts) -> bool:
    return facts.is_link_href and facts.role.lower() in ("", "link")


def _is_file_picker(facts: CommitFacts) -> bool:
    """Pressing it opens a window of the browser, and nothing else."""
    return facts.tag.lower() == "input" and facts.type.lower() == "file"


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
    # A link that leads nowhere is a button, whatever element claims to be one.
    role = facts.role.lower()
    return role in _BUTTON_ROLES or ((tag == "a" or role == "link") and not facts.is_link_href)


# -- what it says


def _said(words: CommitWords, kind: str, facts: CommitFacts) -> _Said | None:
    """The phrase that a control says in any of its texts; one without any is known by its id."""
    texts = facts.texts
    for text in texts:
        if (phrase := words.read(text).get(kind)) is not None:
            return _Said(phrase, "" if text == facts.name else text)
    if texts:
        return None
    token = words.has_token(kind, facts.testid) or words.has_token(kind, facts.id)
    return None if token is None else _Said(token)


def _first_said(words: CommitWords, kinds: Iterable[str], facts: CommitFacts) -> _Said | None:
    return next((said for kind in kinds if (said := _said(words, kind, facts)) is not None), None)


def _named_delete(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    said = _first_said(words, ("delete", "unsubscribe"), facts)
    return None if said is None else _worded("delete", said)


def _named_link(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    said = _said(words, "sign_out", facts)
    return _worded("auth", said) if said is not None else _named_delete(words, facts)


def _sends(words: CommitWords, facts: CommitFacts) -> _Said | None:
    if not facts.near_composer:
        return None
    said = _said(words, "send", facts)
    if said is not None:
        return said
    token = words.has_token("send", facts.testid) or words.has_token("send", facts.id)
    return None if token is None else _Said(token)


def _named_button(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    said = _said(words, "payment", facts)
    if said is not None:
        return _worded("payment", said)
    deletes = _named_delete(words, facts)
    if deletes is not None:
        return deletes
    said = _first_said(words, ("sign_in", "sign_up", "sign_out"), facts)
    if said is not None:
        return _worded("auth", said)
    said = _sends(words, facts)
    if said is not None:
        return _worded("send", said, " beside a message box")
    return _answers(words, facts)


def _answers(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    """Says yes to a dialog that asks whether to commit something."""
    if not facts.question or _said(words, "affirm", facts) is None:
        return None
    for kind, commit in _WEIGHTY:
        if (phrase := words.mentions(kind, facts.question)) is not None:
            return _point(commit, f'answers a dialog that says "{phrase}"')
    return None


def _picks(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    if facts.role.lower() not in _OPTION_ROLES and facts.tag.lower() != "option":
        return None
    if words.find("model_picker", facts.picker_label):
        return _point("switch_model", "chooses a model")
    if words.find("workspace_picker", facts.picker_label):
        return _point("switch_sandbox", "chooses a workspace")
    return None


# -- decisions


def _by_enter(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    """Enter in a field: it sends what stands there, or presses the button of the form."""
    if facts.near_composer:
        return _point("send", "Enter in a message box")
    form = facts.form
    tag = facts.tag.lower()
    # A browser submits a form by Enter from its inputs alone; an element of the page's own making may do anything.
    if form is None or (tag != "input" and "-" not in tag):
        return None
    pressed = CommitFacts("button", "button", "submit", name="", readings=form.button, form=form, submits=True)
    named = _named_button(words, pressed) if form.button else None
    if named is not None and not (named.kind == "auth" and form.has_password):
        return _point(named.kind, f"Enter presses a button that {named.why.removesuffix(', which its name does not')}")
    if submits_harmlessly(form) and form.button:
        said = _first_said(words, ("confirm", "act"), pressed)
        return None if said is None else _point("confirm", f'Enter presses a button that reads "{said.phrase}"')
    return _submits(form, "Enter submits")


def _by_structure(facts: CommitFacts) -> CommitPoint | None:
    """What is sent whatever the control is called."""
    if _is_submit_control(facts):
        return _submits(facts.form, "submits")
    if facts.changes and (facts.form is None or not is_search_form(facts.form)):
        return _point("submit", "its markup sends a change")
    if facts.near_card and facts.form is None and _is_button(facts):
        return _point("payment", "stands beside a payment field")
    return None


def _by_filling(facts: CommitFacts) -> CommitPoint | None:
    """A script submits once the field is filled: its own form, or one that nothing here tells of."""
    if facts.form is None:
        return _point("submit", "its script submits a form")
    return _by_structure(replace(facts, submits=True))


def _by_click(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    if _is_file_picker(facts):
        return None
    if _is_plain_link(facts):
        return _named_link(words, facts) or (_by_structure(facts) if facts.changes else None)
    picked = _picks(words, facts)
    if picked is not None:
        return picked
    button = _is_button(facts) or facts.is_link_href
    named = _named_button(words, facts) if button else None
    if named is not None:
        return named
    signs_in = _is_submit_control(facts) and facts.form is not None and facts.form.has_password
    said = _said(words, "confirm", facts) if button and not signs_in else None
    if said is not None:
        return _worded("confirm", said)
    structure = _by_structure(facts)
    return structure if structure is not None or not button else _by_weaker_words(words, facts)


def _by_weaker_words(words: CommitWords, facts: CommitFacts) -> CommitPoint | None:
    harmless = facts.form is not None and submits_harmlessly(facts.form)
    said = _said(words, "submit", facts)
    if said is not None and not harmless:
        return _worded("submit", said)
    said = _said(words, "act", facts)
    if said is not None:
        return _worded("confirm", said)
    if any(MIXED in words.read(text) for text in facts.texts):
        return _point("confirm", "mixes letters of two alphabets")
    return None


def classify_commit_point(facts: CommitFacts) -> CommitPoint | None:
    """The kind of commit a control stands for, or None; of all that it reads, the most dangerous wins."""
    words = commit_words()
    if facts.trigger == "fill":
        found = _by_filling(facts)
    elif facts.trigger == "enter" and not _is_button(facts) and not facts.is_link_href:
        found = _by_enter(words, facts)
    else:
        found = _by_click(words, facts)
    return accepts_dialogs() if found is None and facts.on_dialog_accept else found


def accepts_dialogs() -> CommitPoint:
    """Whatever the control is: a dialog that is accepted unread may confirm anything."""
    return _point("dialog_accept", "would accept a dialog")
