"""The posterior of the propensities: relevance has a prior, and is integrated out exactly."""
