"""Charts as SVG, drawn by pure functions."""

__all__ = ["charts", "coverage_map", "fact_line", "gate_bars", "lifeline", "lifeline_picture"]
