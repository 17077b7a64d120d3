"""Asking a person: questions of agents and the answers people give them, through a folder both sides can see."""
