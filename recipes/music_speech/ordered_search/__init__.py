"""Experiments on search for ordered subsequences in music and speech."""
