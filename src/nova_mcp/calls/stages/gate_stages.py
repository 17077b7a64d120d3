"""Where gates stand on the way of a call: before it waits for its tab, and again once it has it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from nova_mcp.calls.admission.admission import Admission
from nova_mcp.calls.admission.gates import Admitted, Notice, Refused, admit, reclaimed
from nova_mcp.calls.endings import Ending
from nova_mcp.calls.envelope import Envelope, page_state
from nova_mcp.calls.site_notes import GATE as NOTE_GATE
from nova_mcp.calls.site_notes import SiteNotes
from nova_mcp.calls.stages.stage import Call, Proceed
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.memory.facts.service import FactKeeper
from nova_mcp.settings import Settings
from nova_mcp.tools.spec import GateId

# About the document, which is known for sure only under the lock.
LATE_GATES: Final[tuple[GateId, ...]] = (NOTE_GATE, "safety.perceive_first", "safety.overlay_detected")
# Judged again under the lock: while a call waited for it, the tab may have changed hands or documents.
TAB_GATES: Final[tuple[GateId, ...]] = ("claim.owner", *LATE_GATES)


class Gatekeeper:
    """Asks gates about a call and takes down what they say."""

    def __init__(self, settings: Settings, admission: Admission, claims: ClaimBook, sites: SiteNotes) -> None:
        self._settings = settings
        self._admission = admission
        self._claims = claims
        self._sites = sites

    def words(self, envelope: Envelope) -> tuple[Notice, ...]:
        """What the caller has to hear besides its own matter; told with the answer, once."""
        if envelope.is_step:
            return ()
        envelope.words = self._claims.words_for(envelope.caller.owner)
        return reclaimed(envelope.words)

    def admit(self, call: Call, gates: Collection[GateId]) -> tuple[Notice, ...]:
        envelope, tab, settings = call.envelope, call.tab, self._settings
        envelope.began_on = None if tab is None else tab.url
        envelope.before = page_state(tab, keep_raw_urls=settings.keep_raw_urls, redactor=envelope.redactor)
        facts = self._admission.facts(call.spec, call.params, envelope.connection, tab)
        if tab is not None:
            facts = replace(facts, lease=self._claims.lease_on(tab), lacking=envelope.lacking)
        if NOTE_GATE in gates:
            facts = self._sites.for_gates(facts, envelope)
        match admit(gates, facts, settings.gates):
            case Refused(gate_id, error):
                envelope.gate_id = gate_id
                if gate_id == NOTE_GATE:
                    self._sites.refused(envelope)
                elif gate_id == "setup.shared_agent_id":
                    self._admission.answered((gate_id,), envelope.connection)
                raise error
            case Admitted(notices):
                if tab is not None:
                    self._claims.touched(tab, envelope.caller.owner, take=call.spec.lock == "exclusive")
                return notices


class EarlyGates:
    """Judges what is known before the call waits for its tab; from here on it counts."""

    def __init__(self, gates: Gatekeeper, admission: Admission, facts: FactKeeper, settings: Settings) -> None:
        self._gates = gates
        self._admission = admission
        self._facts = facts
        self._settings = settings

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        await self._weigh(call)
        early = [gate for gate in call.spec.gates if gate not in LATE_GATES]
        call.notices = self._gates.words(call.envelope) + self._gates.admit(call, early)
        self._admission.entered(call.spec, call.params, call.envelope.connection)
        return await proceed()

    async def _weigh(self, call: Call) -> None:
        """What the operator demands of the service this call goes to, and whether it is known to be there."""
        tab, spec = call.tab, call.spec
        if tab is None or "policy.capability" not in spec.gates or self._settings.gates.capability == "off":
            return
        url = getattr(call.params, "url", None)
        place = self._facts.place(tab, url if isinstance(url, str) else None)
        call.envelope.lacking = await self._facts.lacking(spec.effect, place)


class LateGates:
    """Judges the document that is there now; what gates had to say counts as told once the tool has answered."""

    def __init__(self, gates: Gatekeeper, admission: Admission, sites: SiteNotes) -> None:
        self._gates = gates
        self._admission = admission
        self._sites = sites

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        call.notices += self._gates.admit(call, [gate for gate in call.spec.gates if gate in TAB_GATES])
        self._sites.admitted(call.envelope)
        ending = await proceed()
        self._admission.answered((one.gate_id for one in call.notices), call.envelope.connection)
        return ending
