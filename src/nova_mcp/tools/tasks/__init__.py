"""Tools for task profiles, task runs and coverage."""
