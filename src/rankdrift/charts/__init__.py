"""One chart a file, one style."""
