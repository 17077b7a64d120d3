"""Everything that has to do with knowledge, put together over one store."""

from dataclasses import dataclass
from typing import Self

from nova_mcp.core.clock import Clock
from nova_mcp.memory.knowledge.advisor import Advisor
from nova_mcp.memory.knowledge.service import KnowledgeKeeper
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.drafts.generator import Generator
from nova_mcp.memory.promotion.model import ConsentGates
from nova_mcp.memory.promotion.prompts.prompter import Prompter
from nova_mcp.memory.promotion.revalidation.revalidator import Revalidator
from nova_mcp.memory.promotion.service import PromotionKeeper
from nova_mcp.storage.engine import Database


@dataclass(frozen=True, slots=True)
class Learning:
    """What is known, who decides about its level, what could be learned next, and what agents are asked and told."""

    knowledge: KnowledgeKeeper
    promotion: PromotionKeeper
    generator: Generator
    prompter: Prompter
    advisor: Advisor
    revalidator: Revalidator

    @classmethod
    def over(cls, db: Database, clock: Clock, consent: ConsentGates = "standard") -> Self:
        return cls(
            KnowledgeKeeper(db, clock, steps_store),
            PromotionKeeper(db, clock, consent),
            Generator(db, clock),
            Prompter(db, clock),
            Advisor(clock),
            Revalidator(db, clock),
        )
