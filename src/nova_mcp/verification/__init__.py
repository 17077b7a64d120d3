"""CLS, the closed-loop system: an action counts as done only when the page shows it."""
