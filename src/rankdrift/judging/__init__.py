"""The relevance of a query and a doc, from clicks at whatever ranks it was shown.

statistics      what is known of every pair: clicks, exposure …
reading         Log or appearances, Propensities -> statistics, inside the engine; summing has the
                plan, exposures what a row adds
modelled        Log, click model -> the same
shrinkage       clicks and exposure -> relevance with an interval (empirical Bayes)
judging         both -> Judgments; prior_means has features and the level of the query
judgments       the value; file keeps it
grades          0 to 4, or not enough data
exports         the forms in which other tools take judgments
checking        beside human labels, and which pairs a human had better look at
"""
