"""Seconds from the start of a command to its first file, beside the import of torch alone.

``python -m benchmarks.start --against OTHER`` compares this checkout with another one.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import soundfile
import typer

from benchmarks.processes import timed

ROOT = Path(__file__).resolve().parents[1]
TORCH = "import torch"


def main(
    against: Annotated[Path | None, typer.Option(help="Another checkout of isotone.")] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Model. Default: the preset wav2vec2-bert-tiny, untrained.")
    ] = "",
    rounds: Annotated[int, typer.Option(help="Runs of every command.")] = 7,
    imports: Annotated[bool, typer.Option("--imports", help="Also list import times by package.")] = False,
) -> None:
    """Time commands from a cold start, in turn, on one thread; compiled kernels and files are in the caches."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = model or _save_model(folder / "model")
        samples = np.random.default_rng(0).normal(0, 0.1, 48_000)
        soundfile.write(folder / "talk.wav", samples, 16_000)
        (folder / "talk.txt").write_text("she washed the dog")
        runs = {TORCH: (["-c", TORCH], _environment(ROOT))}
        for checkout in filter(None, (ROOT, against)):
            label = "" if checkout == ROOT else f", {checkout.name}"
            for command, arguments in _commands(folder, model).items():
                runs[command + label] = (["-m", "isotone", *arguments], _environment(checkout))
        print(_table(_timed(runs, rounds)))
        if imports:
            print(_imports(*runs["align, 3 s of audio"]))


def _commands(folder: Path, model: str) -> dict[str, list[str]]:
    given = [str(folder / "talk.wav"), "--model", model, "--redo", "--out"]
    speech = {f"{name}, 3 s of audio": [name, *given, str(folder / name)] for name in ("align", "transcribe")}
    return {"--help": ["--help"], **speech}


def _save_model(folder: Path) -> str:
    import torch

    from isotone.model import DecodingConfig, Model
    from isotone.model.encoder import SpeechEncoder
    from isotone.text.tokenizer import CharacterTokenizer

    torch.manual_seed(0)
    heads = {"ctc": {"name": "ctc"}, "ottc": {"name": "ottc", "reads": "features", "layers": 1, "width": 256}}
    reading = DecodingConfig(
        "ctc", {"name": "ctc-greedy"}, "ottc", {"name": "segmental"}, "ctc", {"name": "ctc"}
    )
    labels = ["<pad>", "<unk>", "|", *"abcdefghijklmnopqrstuvwxyz'"]
    Model(SpeechEncoder("wav2vec2-bert-tiny"), heads, CharacterTokenizer(labels), reading).save(folder)
    return str(folder)


def _environment(checkout: Path) -> dict[str, str]:
    paths = os.pathsep.join(str(checkout.resolve() / part) for part in ("src", "plugins"))
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def _timed(
    runs: Mapping[str, tuple[list[str], dict[str, str]]], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Time every run in a new random order per round: seconds of CPU and of the clock; the first round warms up."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    order = random.Random(0)
    for number in range(rounds + 1):
        for name in order.sample(list(runs), len(runs)):
            arguments, environment = runs[name]
            try:
                spent = timed([sys.executable, *arguments], environment)
            except RuntimeError as error:
                raise SystemExit(f"{name}: {error}") from None
            if number:
                found[name].append((spent.cpu_s, spent.clock_s))
    return found


def _table(times: Mapping[str, list[tuple[float, float]]]) -> str:
    torch_s = statistics.median(cpu for cpu, _ in times[TORCH])
    rows = [
        "| command | CPU s, median | least | clock s, median | least | CPU, ratio to torch |",
        "|---|---|---|---|---|---|",
    ]
    for name, runs in times.items():
        cpu, wall = zip(*runs)
        cells = (
            statistics.median(cpu),
            min(cpu),
            statistics.median(wall),
            min(wall),
            statistics.median(cpu) / torch_s,
        )
        rows.append(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return "\n".join(rows)


def _imports(arguments: list[str], environment: dict[str, str]) -> str:
    """Sum import times by package, the longest first."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    spent: Counter[str] = Counter()
    for line in done.stderr.splitlines():
        head, _, rest = line.partition("import time:")
        cells = rest.split("|")
        if not head and len(cells) == 3 and cells[0].strip().isdigit():
            spent[cells[2].strip().split(".")[0]] += int(cells[0])
    rows = [f"| {name} | {1e-3 * spent_us:.0f} |" for name, spent_us in spent.most_common(12)]
    return "\n".join(["", "| package | import, ms |", "|---|---|", *rows])


if __name__ == "__main__":
    typer.run(main)
