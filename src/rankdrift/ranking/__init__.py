"""Rankers learnt from clicks that are worth 1 / propensity each, and a fair judge of them.

gains.py      what a click is worth, Eq. (6), loss-unbiased
training.py   Matrix -> Ranker
evaluation.py Rankers, Matrix -> Comparison
"""
