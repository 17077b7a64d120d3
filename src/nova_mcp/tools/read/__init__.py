"""Tools that look at a page, and the hints that accompany a look."""
