"""Ordered subsequence search by right-monotone selection (OPAS): model, training, set vectors and baselines."""
