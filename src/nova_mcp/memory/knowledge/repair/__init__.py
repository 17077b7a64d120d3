"""Finding the element that a lost selector stood for, or abstaining."""
