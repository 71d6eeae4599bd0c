"""Separation of mixed voices, and assignments: `python recipes/separation/run.py EXPERIMENT [key=value ...]`."""

from pathlib import Path

from assigned.experiment import run
from assigned.settings import load_experiment

from isotone.training.experiments import experiment_arguments, experiments
from isotone.training.loader import RecipeError

if __name__ == "__main__":
    folder = Path(__file__).parent
    name, overrides = experiment_arguments(f"{__doc__}\nExperiments: {', '.join(experiments(folder, None))}")
    try:
        run(load_experiment(folder / f"{name}.yaml", overrides))
    except (FileNotFoundError, ImportError, RecipeError) as error:
        raise SystemExit(f"error: {error}") from None
