"""What a tab remembers of its page: references and snapshots."""


class Perception:
    """Refs and snapshots of one tab."""
