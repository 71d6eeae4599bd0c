"""Contrastive learning on images: scikit-learn's digits, their distortions, and the recipe in miniature."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from isotone_contrastive.embedder import build_embedder
from isotone_contrastive.images import ImageConv

from tests.paths import RECIPES

RECIPE = RECIPES / "contrastive"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(RECIPE))
    from two_views.experiment import run
    from two_views.images import Distort, images
    from two_views.settings import grid, load_experiment


def test_digits() -> None:
    pytest.importorskip("sklearn")
    splits = images(test=300)
    assert {name: len(part.samples) for name, part in splits.items()} == {"train": 1497, "test": 300}
    assert {*splits["test"].labels["digit"]} == {*range(10)}
    assert all(
        image.shape == (64,) and 0 <= image.min() <= image.max() <= 1 for image in splits["test"].samples
    )
    kept = {image.tobytes() for image in splits["train"].samples}
    assert sum(image.tobytes() in kept for image in splits["test"].samples) == 0


def test_distortions_keep_what_they_should() -> None:
    rng = np.random.default_rng(0)
    image = np.zeros((8, 8), np.float32)
    image[3:5, 3:5] = 1.0
    still = Distort(scale=(1.0, 1.0), degrees=0.0, shift=0.0, jitter=0.0)
    np.testing.assert_allclose(still(image.ravel(), rng), image.ravel(), atol=1e-6)
    larger = Distort(scale=(2.0, 2.0), degrees=0.0, shift=0.0, jitter=0.0)(image.ravel(), rng)
    assert larger.sum() == pytest.approx(4 * image.sum(), rel=0.2)
    moved = [Distort(jitter=0.0)(image.ravel(), rng).reshape(8, 8) for _ in range(200)]
    centre = np.stack(
        [np.average(np.indices((8, 8)).reshape(2, -1), axis=1, weights=m.ravel()) for m in moved]
    )
    assert np.abs(centre.mean(0) - 3.5).max() < 0.2
    assert 0.3 < centre.std() < 1.0


def test_images_are_encoded_alone_as_in_a_batch() -> None:
    torch.manual_seed(0)
    embedder = build_embedder({"name": "images", "width": 8}, size=5, hidden=0, parts=1).eval()
    rows = embedder.body.inputs([np.random.default_rng(n).random(64, np.float32) for n in range(3)])
    both = embedder.embed(rows)
    assert both.shape == (3, 5)
    torch.testing.assert_close(embedder.embed(rows[1:2]), both[1:2])
    frames, lengths = embedder.body(torch.stack(rows), torch.tensor([8, 8, 8]))
    assert frames.shape == (3, 4, 8)
    assert lengths.tolist() == [4, 4, 4]
    with pytest.raises(ValueError, match="Image 1: expected 8 x 8"):
        embedder.body.inputs([np.zeros(64, np.float32), np.zeros(60, np.float32)])
    with pytest.raises(ValueError, match="multiple of 4"):
        ImageConv(side=6)


@pytest.mark.parametrize("name", ["images", "beta_images"])
def test_a_recipe_runs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    options = [
        "train.steps=1",
        "train.batch_size=8",
        "seeds=[0]",
        "views=2",
        "data.test=1500",
        f"output={tmp_path}/x",
    ]
    loaded = load_experiment(RECIPE / f"{name}.yaml", options)
    rows = [json.loads(line) for line in (run(loaded) / "rows.jsonl").read_text().splitlines()]
    assert [row["system"] for row in rows] == list(grid(loaded))
    assert all(row["scores"].keys() == {"digit"} for row in rows)
    if name == "beta_images":
        assert [row["beta"] for row in rows] == [n / 8 for n in range(16)]
