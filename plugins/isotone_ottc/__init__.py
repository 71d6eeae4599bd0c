"""Optimal Temporal Transport Classification: a head, a loss, forced alignment and decoding."""
