"""PKS: reviewed knowledge of websites — how a situation is recognised, handled and verified, and how far that holds."""
