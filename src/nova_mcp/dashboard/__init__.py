"""Local web pages over the stores, for the person who operates Nova."""
