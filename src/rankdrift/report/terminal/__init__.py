"""Tables and words for the terminal."""
