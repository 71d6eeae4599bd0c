"""Search for ordered subsequences of audio: `python recipes/music_speech/run.py EXPERIMENT [key=value ...]`."""

from pathlib import Path

from ordered_search.experiment import run
from ordered_search.settings import EXPERIMENTS, load_settings

from isotone.registry import OptionError, UnknownPlugin
from isotone.training.experiments import experiment_arguments

if __name__ == "__main__":
    name, overrides = experiment_arguments(f"{__doc__}\nExperiments: {', '.join(EXPERIMENTS)}")
    try:
        print(run(load_settings(name, overrides), Path.cwd()), end="")
    except (FileNotFoundError, ImportError, OptionError, UnknownPlugin, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
