"""Evidence and coverage of units: visits, scans and their grades."""
