"""Charts of results: one chart a file, and the style that all of them share."""
