"""Tools that commit something and prove it: submit, login, switch, goals, sequences."""
