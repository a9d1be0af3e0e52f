"""Rankers learnt from clicks that are worth 1 / propensity each, and a fair judge of them.

matrix          results shown as rows of numbers; matrix_reading reads them from a log
gains           what a click is worth, Eq. (6), loss-unbiased
choosing        how large trees may be, by queries held out
training        Matrix -> Ranker; backends has the libraries that grow the trees
ranker          the trained model and its file
exporting       the same rows and gains as files, for other tools
evaluation      Rankers, Matrix -> Comparison, with auc and measures
"""
