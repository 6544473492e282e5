"""Writing to the terminal and asking questions on it."""
