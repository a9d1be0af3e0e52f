"""The accuracy lab: worlds with a known truth, estimators, and how far each is off.

worlds.py         how pairs come about where Appendix D does not say
scenarios.py      the worlds, each with what it is to show
estimators.py     what is tried on them
bounds.py         how well any method could do
trials.py         one repetition, and what many add up to
small_samples.py  how much of a bias is the finite sample's, and how much luck
world_biases.py   the plain estimate in the worlds of `rankdrift.simulate`: docs/worlds.md's table
verdicts.py       what `diagnose` says in them: docs/reading-the-diagnoses.md's tables
adjusting.py      what `--adjust score` costs there, and why it must
judging.py        relevance judged in worlds of known relevance
peers.py          other people's estimators, in an environment of their own
page.py           the tables of docs/accuracy.md
"""
