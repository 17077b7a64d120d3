"""Settings for the whole suite."""

import os

from hypothesis import settings

# Steady runs judge a change; `HYPOTHESIS_PROFILE=explore` looks for cases nobody thought of.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
