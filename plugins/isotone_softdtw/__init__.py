"""Soft-DTW: alignment losses, divergences between sequences, and dynamic time warping."""
