"""Layers over a page: finding and dismissing them without consenting."""
