"""Shows what others found: on a page, or as words and tables in the terminal."""
