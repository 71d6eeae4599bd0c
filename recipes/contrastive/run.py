"""Contrastive losses and QARe: `python recipes/contrastive/run.py EXPERIMENT [key=value ...]`."""

from pathlib import Path

from isotone_contrastive.experiment import load_experiment, run

from isotone.training.config import RecipeError
from isotone.training.experiments import experiment_arguments

if __name__ == "__main__":
    known = sorted(p.stem for p in Path(__file__).parent.glob("*.yaml") if p.stem != "base")
    name, overrides = experiment_arguments(f"{__doc__}\nExperiments: {', '.join(known)}")
    try:
        run(load_experiment(Path(__file__).with_name(f"{name}.yaml"), overrides))
    except (FileNotFoundError, ImportError, RecipeError) as error:
        raise SystemExit(f"error: {error}") from None
