"""Connectionist temporal classification: a head, losses, forced alignment and greedy decoding."""
