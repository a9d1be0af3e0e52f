"""Other ways to learn propensities, to compare with: each in a module of its own."""
