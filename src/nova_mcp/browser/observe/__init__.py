"""Observing what an action caused on the page and on the host."""
