"""Counts: all that the likelihood needs to know of a log. They add."""

from rankdrift.counts.counts import Counts, merge

__all__ = ["Counts", "merge"]
