"""Scikit-learn's embedded digits, and random distortions of small images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import affine_transform

from isotone.training.augment import Augmentation, Samples, augmentations
from two_views.data import SOURCES, Recordings, Splits

_SIDE = 8


def images(*, test: int = 500, seed: int = 0) -> Splits:
    """Load 1,797 grey images of handwritten digits, 8 x 8, as pixels from 0 to 1 row by row. Label: ``digit``.

    Args:
        test: Images for testing.
        seed: Of their choice.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng([seed, 9]).permutation(len(found.target))
    splits: Splits = {"train": Recordings(), "test": Recordings()}
    for place, number in enumerate(order.tolist()):
        part = splits["test" if place < test else "train"]
        pixels = (found.images[number] / 16).astype(np.float32).ravel()
        part.add(pixels, len(part.samples), 0, digit=int(found.target[number]))
    return splits


@augmentations.register("distort")
class Distort(Augmentation):
    """An image cropped and resized, turned and shifted, with other brightness and contrast.

    The paper's augmentations without flips, which change digits, and without colours.

    Args:
        scale: Range of the size.
        degrees: Largest turn.
        shift: Largest shift, pixels.
        jitter: Largest change of brightness, and of contrast relative to 1.
        probability: Share of the images that are changed.
    """

    def __init__(
        self,
        *,
        scale: Sequence[float] = (0.8, 1.25),
        degrees: float = 15.0,
        shift: float = 1.0,
        jitter: float = 0.3,
        probability: float = 1.0,
    ) -> None:
        super().__init__(probability)
        self.scale, self.degrees, self.shift, self.jitter = scale, degrees, shift, jitter

    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[np.float32]:
        """Distort pixels ``(64,)``."""
        image = samples.reshape(_SIDE, _SIDE)
        angle, size = np.deg2rad(rng.uniform(-self.degrees, self.degrees)), rng.uniform(*self.scale)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / size
        centre = np.full(2, (_SIDE - 1) / 2)
        offset = centre - turn @ (centre + rng.uniform(-self.shift, self.shift, 2))
        moved = affine_transform(image, turn, offset, order=1)
        contrast, brightness = (
            1 + rng.uniform(-self.jitter, self.jitter),
            rng.uniform(-self.jitter, self.jitter),
        )
        return (contrast * moved + brightness * 0.5).astype(np.float32).ravel()


SOURCES["images"] = images
