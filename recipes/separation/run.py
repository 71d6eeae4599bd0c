"""Separation of mixed voices, and assignments: `python recipes/separation/run.py EXPERIMENT [key=value ...]`."""

from pathlib import Path

from assigned.experiment import run
from assigned.settings import load_experiment

from isotone.training.grid import main

if __name__ == "__main__":
    main(__doc__, Path(__file__).parent, load_experiment, run)
