"""From what the page shows of a control to the question whether using it commits something."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, cast

from nova_mcp.browser.commits.commit_points import (
    CommitFacts,
    CommitPoint,
    FormFacts,
    FormMethod,
    Trigger,
    classify_commit_point,
)
from nova_mcp.browser.commits.commit_words import CommitWords, commit_words
from nova_mcp.browser.perceive.scan_values import SeenElement, SeenForm, Spot
from nova_mcp.core.page.labels import identifier_words

_METHODS: Final = frozenset({"get", "post", "dialog"})
_TEXT_TYPES: Final = frozenset({"", "text", "search"})
_SUBMIT_TYPES: Final = frozenset({"submit", "image"})


def form_facts(form: SeenForm | None) -> FormFacts | None:
    """Only a real form can be submitted; a region that looks like one cannot."""
    if form is None or not form.is_form:
        return None
    types = {field.type for field in form.fields}
    named = [field for field in form.fields if field.tag == "input" and field.type in _TEXT_TYPES]
    return FormFacts(
        method=cast(FormMethod, form.method) if form.method in _METHODS else "",
        action=form.action,
        role_search=form.search,
        has_search_type="search" in types,
        has_password="password" in types,
        has_card=any(
            field.card or any(part.startswith("cc-") for part in field.autocomplete.split()) for field in form.fields
        ),
        has_file="file" in types,
        has_textarea=any(field.tag == "textarea" for field in form.fields),
        search_names=tuple(text for field in named for text in (field.name, field.label) if text),
        headings=form.headings,
        addresses=form.addresses,
        button=form.button,
    )


def commit_facts(
    element: SeenElement, form: SeenForm | None, trigger: Trigger, *, accepts: bool = False
) -> CommitFacts:
    owner = form_facts(form)
    if owner is not None and form is not None:
        owner = replace(owner, posts_anyway=form.enter_posts if trigger == "enter" else element.posts)
    return _facts(element, owner, trigger, accepts=accepts)


def _facts(element: SeenElement, owner: FormFacts | None, trigger: Trigger, *, accepts: bool = False) -> CommitFacts:
    facts = element.facts
    return CommitFacts(
        tag=facts.tag,
        role="button" if element.says else facts.role,
        type=facts.type,
        name=element.says or facts.name,
        id=facts.id,
        testid=facts.testid,
        is_link_href=element.is_link,
        form=owner,
        submits=element.submits,
        near_composer=element.composer if trigger == "enter" else element.near_composer,
        picker_label=element.picker_label,
        trigger=trigger,
        on_dialog_accept=accepts,
        readings=tuple(element.reads.split("\n")) if element.reads else (),
        question=element.question,
        near_card=element.near_card,
        changes=element.changes,
    )


def _may_commit(element: SeenElement, words: CommitWords) -> bool:
    """False only where no rule can apply: nothing is submitted, and no word of any list is said."""
    facts = element.facts
    if (
        element.submits
        or element.picker_label
        or element.changes
        or element.near_card
        or (element.form and (facts.type in _SUBMIT_TYPES or facts.tag == "button"))
    ):
        return True
    name = element.says or facts.name
    if words.read(name) or any(words.read(text) for text in element.reads.split("\n")):
        return True
    if (name.strip() or element.reads) and not element.near_composer:
        return False
    return not words.openings.isdisjoint((*identifier_words(facts.testid), *identifier_words(facts.id)))


def previewed(elements: Iterable[SeenElement], forms: Mapping[Spot, SeenForm]) -> dict[Spot, CommitPoint]:
    """The commit points among these elements, each as a click on it would be."""
    words = commit_words()
    owners = {spot: form_facts(form) for spot, form in forms.items()}
    points: dict[Spot, CommitPoint] = {}
    for element in elements:
        if not _may_commit(element, words):
            continue
        owner = owners.get((element.facts.frame, element.form))
        if owner is not None and element.posts:
            owner = replace(owner, posts_anyway=True)
        if (point := classify_commit_point(_facts(element, owner, "click"))) is not None:
            points[element.spot] = point
    return points
