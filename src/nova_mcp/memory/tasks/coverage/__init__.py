"""Evidence and coverage of units: visits, scans and their grades."""

__all__ = [
    "evidence_collector",
    "evidence_rules",
    "evidence_store",
    "locators",
    "rules",
    "service",
    "site_urls",
    "store",
    "visit_store",
    "visits",
]
