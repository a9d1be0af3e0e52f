"""Where data is big: what a log is, which column is what, and the engines that read it."""

from rankdrift.log.log import Log, read_log

__all__ = ["Log", "read_log"]
