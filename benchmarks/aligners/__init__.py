"""Forced aligners beside each other on hand-labelled recordings: clean, in noise, through a telephone, in a room."""
