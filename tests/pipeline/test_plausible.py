"""Words that are too long to be speech."""

from __future__ import annotations

import numpy as np
import pytest

from isotone.pipeline import Pipeline
from isotone.pipeline.plausible import long_words, longest
from tests.pipeline.parts import emissions_of, give, phone_model


def test_only_what_is_longer_than_it_can_be_is_said() -> None:
    assert long_words([("a", longest(1), 1), ("sit", longest(3), 3)]) == ()
    (sentence,) = long_words([("a", 0.2, 1), ("sit", 12.34, 4)])
    assert sentence.startswith("the word 'sit' lasts 12.3 s, and at most 1.6 s are likely")


@pytest.mark.parametrize(("count", "last"), [(3, None), (4, "1 more word lasts"), (9, "6 more words last")])
def test_three_words_are_named_at_most(count: int, last: str | None) -> None:
    sentences = long_words([(f"w{i}", 5.0, 2) for i in range(count)])
    assert ["'w0'" in sentences[0], "'w1'" in sentences[1], "'w2'" in sentences[2]] == [True] * 3
    assert len(sentences) == 3 + (last is not None)
    assert last is None or sentences[3].startswith(last)


def test_a_result_says_which_of_its_words_are_too_long() -> None:
    """A word of three phones that is drawn over five seconds of one of them; stars may last as long as they like."""
    pipeline = Pipeline(phone_model(), aligner="segmental")
    sounds = emissions_of(".." + "s" * 250 + "iit..aaat...")
    give(pipeline, sounds)
    samples = np.zeros(int(sounds.lengths[0]) * 320, np.float32)
    result = pipeline.align("u", samples, pipeline.encode("sit at"))
    (warning,) = result.warnings
    assert warning.startswith("the word 'sit' lasts 5.1 s")
    assert pipeline.align("u", samples, pipeline.encode("* at")).warnings == ()
