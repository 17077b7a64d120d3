"""TOB, the tool observation bus: what was actually observed, call by call."""
