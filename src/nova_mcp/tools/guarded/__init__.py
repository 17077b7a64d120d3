"""Tools that commit something and prove it: submit, login, switch, goals, sequences."""

__all__ = ["contract_params", "goals", "guard"]
