"""Relaxations of permutations and selections: Sinkhorn, Gumbel-Sinkhorn, OT4P, and the exact assignments."""
