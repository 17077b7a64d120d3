"""What texts of a page mean: selectors, keys, and what controls say."""
