"""ALP, the agent learning pipeline: decides whether evidence is strong enough to become guidance."""

__all__ = [
    "collector",
    "drafts",
    "event_store",
    "explain",
    "gates",
    "import_pack",
    "learning",
    "model",
    "overview",
    "promoter",
    "prompts",
    "replay",
    "retention",
    "revalidation",
    "service",
    "sightings",
    "steps_store",
    "tables",
    "telemetry",
]
