"""What texts of a page mean: selectors, keys, and what controls say."""

__all__ = ["consent_words", "control_labels", "keys", "labels", "look_alikes", "looks", "selectors"]
