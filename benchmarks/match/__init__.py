"""Matching of recordings: the times of one carried to another, against hand labels or known changes."""
