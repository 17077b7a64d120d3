"""Reading a page: text, search, tables, screenshots, snapshots."""
