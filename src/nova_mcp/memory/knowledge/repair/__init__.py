"""Finding the element that a lost selector stood for, or abstaining."""

__all__ = ["print_similarity", "repair"]
