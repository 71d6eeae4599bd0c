"""Consistency of a model with itself: two views of an utterance, one answer (CR-CTC, CROTTC)."""
