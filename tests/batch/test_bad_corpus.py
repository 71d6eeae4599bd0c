"""A damaged label file of a corpus leaves the other files as they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from isotone.corpus.timit import TimitCorpus
from tests.tiny_models import isotone, save_noise


def timit_tree(root: Path, count: int = 4) -> Path:
    """Write noise in TIMIT's layout, one speaker."""
    folder = root / "TRAIN/DR1/FCJF0"
    for i in range(count):
        save_noise(folder / f"SX{i}.WAV", 1.0, seed=i)
        (folder / f"SX{i}.PHN").write_text("0 4000 h#\n4000 8000 s\n8000 12000 iy\n12000 16000 h#\n")
        (folder / f"SX{i}.WRD").write_text("4000 12000 see\n")
        (folder / f"SX{i}.TXT").write_text("0 16000 See.\n")
    return root


def test_a_cut_label_file_harms_no_other(tmp_path: Path) -> None:
    folder = timit_tree(tmp_path / "timit") / "TRAIN/DR1/FCJF0"
    good = (folder / "SX0.PHN").read_bytes()
    (folder / "SX1.PHN").write_bytes(good[: good.index(b"8000 12000") + 4])  # in the middle of a line
    (folder / "SX2.PHN").write_bytes(b"")
    corpus = TimitCorpus(tmp_path / "timit")
    assert corpus.load("train")["id"][:] == ["fcjf0_sx0", "fcjf0_sx3"]
    skipped = dict(corpus.skipped)
    assert "SX1.PHN, line 3" in skipped["fcjf0_sx1"]
    assert "SX2.PHN" in skipped["fcjf0_sx2"]


def test_a_cut_reference_is_left_out_of_the_scores(tmp_path: Path) -> None:
    folder = timit_tree(tmp_path / "timit") / "TRAIN/DR1/FCJF0"
    shutil.copytree(folder, tmp_path / "hyp")
    good = (folder / "SX0.PHN").read_bytes()
    (folder / "SX1.PHN").write_bytes(good[: good.index(b"8000 12000") + 4])
    paths = (tmp_path / "hyp", tmp_path / "timit")
    result = isotone("evaluate", *paths, "--json", tmp_path / "s.json", code=1)
    assert "SX1" in result.stderr
    assert "line 3" in result.stderr
    found = json.loads((tmp_path / "s.json").read_text())["hyp"]
    assert found["utterances"] == 3
    assert [row["value"] for row in found["metrics"] if row["metric"] == "per"] == [0.0]
