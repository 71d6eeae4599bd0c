"""Experiments on losses of two views: matching and probing."""
