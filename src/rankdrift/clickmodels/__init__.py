"""Models of how users go through a list of results: fitted to a log, and set side by side."""
