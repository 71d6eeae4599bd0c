"""TIMIT: `python recipes/timit/run.py EXPERIMENT [key=value ...]`, or under `accelerate launch`."""

import sys
from pathlib import Path

from isotone.training.config import RecipeError, load_recipe
from isotone.training.run import run

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit(
            f"{__doc__}\nExperiments: {', '.join(sorted(p.stem for p in Path(__file__).parent.glob('*.yaml')))}"
        )
    try:
        recipe = load_recipe(Path(__file__).with_name(f"{sys.argv[1]}.yaml"), sys.argv[2:])
    except (FileNotFoundError, RecipeError) as error:
        raise SystemExit(f"error: {error}") from None
    run(recipe)
