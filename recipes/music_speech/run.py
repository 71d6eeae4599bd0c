"""Search for ordered subsequences of audio: `python recipes/music_speech/run.py EXPERIMENT [key=value ...]`."""

import sys
from pathlib import Path

from ordered_search.experiment import run
from ordered_search.settings import EXPERIMENTS, load

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit(f"{__doc__}\nExperiments: {', '.join(EXPERIMENTS)}")
    try:
        print(run(load(sys.argv[1], sys.argv[2:]), Path.cwd()))
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
