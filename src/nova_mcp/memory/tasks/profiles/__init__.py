"""Task profiles: storing them and matching a described task to one."""
