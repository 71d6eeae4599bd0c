"""A user's own corpus: a module, a recipe and a ``run.py``, without changes elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile

from tests.conftest import BASE, CTC

MODULE = '''
from functools import partial

from isotone import audio, corpora
from isotone.corpus.rows import Part, RowCorpus


@corpora.register("table")
class Table(RowCorpus):
    """Recordings that a table lists: file, split, text."""

    title = "Table"

    def parts(self, split):
        for line in (self.root / "table.tsv").read_text().splitlines():
            name, of, text = line.split("\\t")
            if of == split:
                yield name, partial(self.read, name, text)

    def read(self, name, text):
        path = self.root / name
        nothing = {"label": [], "start": [], "end": []}
        row = {"id": path.stem, "audio": str(path), "start": 0.0, "end": audio.info(path).seconds, "text": text}
        return Part([{**row, "words": nothing, "phones": nothing, "speaker": ""}])
'''

RUN = """
import sys
from pathlib import Path

import table  # noqa: F401
from isotone.training.config import load_recipe
from isotone.training.run import run

run(load_recipe(Path(__file__).with_name("base.yaml"), sys.argv[1:]))
"""


def test_three_files_are_a_corpus_and_its_recipe(tmp_path: Path) -> None:
    data, recipe = tmp_path / "data", tmp_path / "recipe"
    data.mkdir()
    recipe.mkdir()
    lines = ""
    for i in range(8):
        soundfile.write(data / f"{i}.wav", np.random.default_rng(i).normal(0, 0.1, 16000), 16000)
        lines += f"{i}.wav\t{'train' if i < 5 else 'dev' if i < 6 else 'test'}\tspoken words\n"
    lines += "gone.wav\ttrain\tnothing\n"
    (data / "table.tsv").write_text(lines)
    (recipe / "table.py").write_text(MODULE)
    (recipe / "run.py").write_text(RUN)
    base = BASE.format(root=data).replace("name: timit", "name: table")
    base = base.replace("tokens: {unit: phones, silence: sil}", "tokens: {unit: characters}")
    (recipe / "base.yaml").write_text(base + CTC)
    command = [sys.executable, str(recipe / "run.py"), f"output={tmp_path / 'run'}", "train.steps=2"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "error_rate" in json.loads((tmp_path / "run/result.json").read_text())
    predictions = [json.loads(line) for line in (tmp_path / "run/predictions.jsonl").read_text().splitlines()]
    assert [p["id"] for p in predictions] == ["6", "7"]
    skipped = [json.loads(line) for line in (tmp_path / "run/skipped.jsonl").read_text().splitlines()]
    assert [s["id"] for s in skipped] == ["gone.wav"]
