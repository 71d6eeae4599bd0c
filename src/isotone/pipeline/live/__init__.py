"""Alignment of a recording while it is made: words are given as they end."""
