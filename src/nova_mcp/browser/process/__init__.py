"""The browser process and its driver: start, watch, replace, end."""
