"""The last look at an answer: no secret value leaves in either of its forms."""

from dataclasses import replace
from typing import cast

from nova_mcp.calls.model import Answer, ResourceContent
from nova_mcp.core.values import Json
from nova_mcp.secrets.redactor import Redactor
from nova_mcp.tools.spec import compact


def redacted_answer(answer: Answer, redactor: Redactor) -> Answer:
    """The answer with every known secret value replaced by its name; pictures are covered where they are taken."""
    if not redactor.filter.active:
        return answer
    structured = cast(dict[str, Json], redactor.json(answer.structured))
    # A text that is the body itself is written anew: replacing a number inside JSON would break it.
    written = answer.text == compact(answer.structured)
    text = compact(structured) if written else redactor.text(answer.text)
    return replace(answer, structured=structured, text=text)


def redacted_resource(content: ResourceContent, redactor: Redactor) -> ResourceContent:
    """Stored texts were made safe when they were written; secrets that became known since are caught here."""
    return content if content.text is None else replace(content, text=redactor.text(content.text))
