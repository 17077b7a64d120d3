"""Values and rules that every layer uses: clock and ids, URLs, hosts, text, tokens, redaction, policy."""

__all__ = [
    "clock",
    "concurrency",
    "connections",
    "file_lock",
    "hosts",
    "keywords",
    "leases",
    "mailbox",
    "page",
    "policy",
    "processes",
    "questions",
    "redaction",
    "signal_vocabulary",
    "stop_file",
    "tokens",
    "urls",
    "values",
]
