"""Tools that turn evidence into knowledge and explain its level."""
