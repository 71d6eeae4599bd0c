"""Presence of words after a model has changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.model.check import Presence
from isotone.pipeline.presence import Evidence
from isotone.pipeline.verdict import judge
from isotone.training.known_words import loosened

# log-odds are the feature itself
PRESENCE = Presence(("ctc",), (0.0, 1.0), (0.0, 1.0), 0.1, 0.9, "dev", 10, 0.0, 1.0)


def of(words: list[float], gaps: list[float]) -> Evidence:
    return Evidence(
        list(range(len(words))), np.array(words)[:, None], np.array(gaps)[:, None], list(range(len(gaps)))
    )


def test_a_word_that_was_found_before_is_found_after() -> None:
    before, after = of([5.0, 4.0, 6.0], [-5.0] * 4), of([5.0, -4.0, 6.0], [-5.0, 3.0, -5.0, -5.0])
    assert judge(PRESENCE, after).absent == {1}
    assert judge(PRESENCE, after).extra == {1}
    found = loosened(PRESENCE, [(before, after)])
    assert not judge(found, after).suspicious
    assert judge(found, of([5.0, -4.1, 6.0], [-5.0] * 4)).absent == {1}, "no looser than that"


def test_a_word_that_was_not_said_does_not_count() -> None:
    before, after = (
        of([5.0, -4.0, 6.0], [-5.0, 4.0, -5.0, -5.0]),
        of([5.0, -5.0, 6.0], [-5.0, 5.0, -5.0, -5.0]),
    )
    assert loosened(PRESENCE, [(before, after)]) == PRESENCE
    assert loosened(PRESENCE, []) == PRESENCE


def test_of_many_words_the_share_of_the_fit_is_lost() -> None:
    rng = np.random.default_rng(0)
    before = of([5.0] * 10, [-5.0] * 11)
    after = [of(rng.normal(0, 3, 10).tolist(), [-5.0] * 11) for _ in range(1000)]
    found = loosened(PRESENCE, [(before, one) for one in after])
    lost = sum(len(judge(found, one).absent) for one in after) / 10_000
    assert lost == pytest.approx(0.003, abs=0.0005)
    assert sum(len(judge(PRESENCE, one).absent) for one in after) > 1000, "as they were, a fifth"


@given(
    st.lists(st.lists(st.floats(-20, 20), min_size=1, max_size=8), min_size=1, max_size=6),
    st.floats(0, 1),
    st.floats(0.01, 0.5),
    st.sampled_from([(), (2.0, -0.5)]),
)
def test_thresholds_only_loosen(
    texts: list[list[float]], slope: float, least: float, rise: tuple[float, ...]
) -> None:
    presence = replace(PRESENCE, slope=slope, least=least, rise=rise)
    pairs = [(of([9.0] * len(odds), [-9.0] * (len(odds) + 1)), of(odds, [-9.0, *odds])) for odds in texts]
    found = loosened(presence, pairs)
    assert found.least <= presence.least
    assert found.most >= presence.most
    assert found.rise[:1] >= presence.rise[:1]
    assert found.rise[1:] == presence.rise[1:]
    assert not any(judge(found, after).suspicious for _, after in pairs)
