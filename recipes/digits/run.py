"""Spoken digits: `python recipes/digits/run.py EXPERIMENT data.root=FOLDER [key=value ...]`."""

from isotone.training.run import main

if __name__ == "__main__":
    main(__file__, __doc__)
