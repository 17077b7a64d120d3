"""Commands for knowledge of sites."""
