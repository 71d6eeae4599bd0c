"""LibriSpeech: `python recipes/librispeech/run.py EXPERIMENT [key=value ...]`, or under `accelerate launch`."""

from isotone.training.run import main

if __name__ == "__main__":
    main(__file__, __doc__)
