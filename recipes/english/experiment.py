"""Experiments on the scenes: `python recipes/english/experiment.py MODEL data.root=SCENES [key=value ...]`."""

from isotone.training.run import main

if __name__ == "__main__":
    main(__file__, __doc__)
