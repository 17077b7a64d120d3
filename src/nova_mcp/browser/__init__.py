"""Chromium through Playwright: the only package that knows the driver."""
