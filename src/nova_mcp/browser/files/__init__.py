"""Downloads and uploads."""
