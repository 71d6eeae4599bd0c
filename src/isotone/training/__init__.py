"""Training: recipes, data, the objective, the loop and what is written of a run."""
