"""Tabs: their ids, their pages and who works in them."""
