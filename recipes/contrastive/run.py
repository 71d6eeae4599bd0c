"""Contrastive losses and QARe: `python recipes/contrastive/run.py EXPERIMENT [key=value ...]`."""

from pathlib import Path

from two_views.experiment import run
from two_views.settings import load_experiment

from isotone.training.grid import main

if __name__ == "__main__":
    main(__doc__, Path(__file__).parent, load_experiment, run)
