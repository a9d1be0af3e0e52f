"""When a log cannot tell: the smallest experiment that can. Plan it, run it, read it."""
