"""Evidence Verification Mode (EVM): how claims are to be tested in task mode; guidance, nothing is enforced; pure."""

from typing import Final

VERSION: Final = "v1"
CRITICAL_SOURCES: Final = 2
OTHER_SOURCES: Final = 1
CRITICAL_DOMAINS: Final = (
    "security",
    "medical",
    "legal",
    "financial",
    "political",
    "pricing",
    "deadlines",
    "current_state",
)
OUTPUT_SECTIONS: Final = ("Results", "Sources", "Unknowns")
COMPONENT: Final = "evm"

_CRITICAL: Final = ", ".join(name.replace("_", " ") for name in CRITICAL_DOMAINS)

TEXT: Final = f"""## Checking claims (EVM)
- Split the question into claims that can be tested one by one.
- A claim about one of these needs {CRITICAL_SOURCES} independent sources: {_CRITICAL}. Any other claim needs \
{OTHER_SOURCES}. Sources are independent if their registrable domains differ.
- What you can't verify is unknown: name it, with one concrete next step. Stop once every claim is tested.
- Answer in the sections {", ".join(OUTPUT_SECTIONS)}. nova.memory_add_candidate with component "{COMPONENT}" keeps a \
claim and its evidence. Nova does not judge your final answer."""
