"""Values that every layer passes on: JSON, and whose something is."""

from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
# An object whose fields nobody has checked yet: an answer as a client received it.
JsonObject: TypeAlias = dict[str, Any]

# A principal and one of its agents: whose a call, a claim or a run is.
Owner: TypeAlias = tuple[str, str]
