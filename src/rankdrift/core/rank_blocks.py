"""Blocks of ranks: a single rank has too few clicks to say much, so ranks are told in blocks."""

# 1, 2, 3-5, 6-10, 11-20, 21-50 and so on: where each begins.
ONE_TWO_FIVE_STARTS = (2, 3, 6, 11, 21, 51, 101, 201, 501)
