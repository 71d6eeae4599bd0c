"""Learned codes for retrieval: `python recipes/hashing/run.py EXPERIMENT [key=value ...]`."""

from pathlib import Path

from learned_codes.experiment import run
from learned_codes.settings import load_experiment

from isotone.training.grid import main

if __name__ == "__main__":
    main(__doc__, Path(__file__).parent, load_experiment, run)
