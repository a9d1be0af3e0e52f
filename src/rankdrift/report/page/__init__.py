"""HTML that stands alone: works offline, on a phone and in print."""
