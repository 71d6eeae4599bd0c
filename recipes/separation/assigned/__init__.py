"""Permutation-invariant training of a separator: mixtures, a masking network, and assignments of its outputs."""
