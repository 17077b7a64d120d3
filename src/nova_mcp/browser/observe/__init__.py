"""Observing what an action caused on the page and on the host."""

__all__ = ["effects", "error_words", "host_window", "page_witness", "settle"]
