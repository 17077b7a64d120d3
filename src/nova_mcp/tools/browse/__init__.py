"""Tools that move, click, type and manage tabs and sandboxes."""
