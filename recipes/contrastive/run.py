"""Contrastive losses and QARe: `python recipes/contrastive/run.py EXPERIMENT [key=value ...]`."""

import sys
from pathlib import Path

from isotone_contrastive.experiment import load_experiment, run

from isotone.training.config import RecipeError

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        known = sorted(p.stem for p in Path(__file__).parent.glob("*.yaml") if p.stem != "base")
        raise SystemExit(f"{__doc__}\nExperiments: {', '.join(known)}")
    try:
        run(load_experiment(Path(__file__).with_name(f"{sys.argv[1]}.yaml"), sys.argv[2:]))
    except (FileNotFoundError, ImportError, RecipeError) as error:
        raise SystemExit(f"error: {error}") from None
