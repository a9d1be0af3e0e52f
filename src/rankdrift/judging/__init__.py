"""The relevance of a query and a doc, from clicks at whatever ranks it was shown.

statistics      Log, Propensities -> what is known of every pair, inside the engine
shrinkage       clicks and exposure -> relevance with an interval (empirical Bayes)
judging         both -> Judgments; prior_means has features and the level of the query
judgments       the value; file keeps it
grades          0 to 4, or not enough data
exports         the forms in which other tools take judgments
checking        beside human labels, and which pairs a human had better look at
"""
