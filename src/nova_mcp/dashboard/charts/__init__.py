"""Charts as SVG, drawn by pure functions."""
