"""Transition contracts: their language, templates and evaluation."""
