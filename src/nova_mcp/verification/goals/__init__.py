"""Goals: registered work and its steps."""
