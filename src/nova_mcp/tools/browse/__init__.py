"""Tools that move, click, type and manage tabs and sandboxes."""

__all__ = [
    "act_support",
    "combined_effect",
    "learning_signals",
    "lost_selectors",
    "navigate",
    "screenshot",
    "unseen_controls",
]
