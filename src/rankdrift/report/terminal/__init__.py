"""Results as words and tables in the terminal."""
