"""Tools for live facts."""
