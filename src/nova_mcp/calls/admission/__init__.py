"""Admission: what gates ask of a call, and the gates that answer."""
