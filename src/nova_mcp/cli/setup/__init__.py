"""Commands that set up and check an installation."""
