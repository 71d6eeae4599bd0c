"""Consistency of a model's outputs for two views of an utterance (CR-CTC, CROTTC)."""
