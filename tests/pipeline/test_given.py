"""A transcript as it is given: with descriptions in subtitles, and several of them at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isotone.pipeline import Pipeline
from isotone.pipeline.given import align_text, align_texts
from isotone.text.options import TextOptions
from isotone.transcripts import Passage, numbered, subtitles
from tests.pipeline.parts import model_of_characters

NOISE = np.random.default_rng(0).normal(0, 0.1, 4 * 16_000).astype(np.float32)
CUES = list(
    subtitles.srt(
        "1\n00:00:00,500 --> 00:00:01,500\n[a dog barks]\nso it\n\n2\n00:00:02,000 --> 00:00:03,000\nis\n"
    )
)


def test_descriptions_in_subtitles_are_not_aligned(characters: Pipeline) -> None:
    found, transcript = align_text(characters, "u", NOISE, CUES, 0.5)
    assert found.alignment.tier("words").labels == ["so", "it", "is"]
    assert [word.text for word in transcript.words] == ["so", "it", "is"]
    assert found.text == "[a dog barks]\nso it\nis", "as it is written"
    assert found.alignment.passages == numbered(CUES)
    assert found.warnings[0].endswith("(--keep-markup reads them): '[a dog barks]'")
    first = found.alignment.tier("words")[0].origin
    assert first is not None
    assert CUES[0].text[first.start : first.end] == "so"


def test_brackets_elsewhere_are_aligned(characters: Pipeline) -> None:
    every = ["[a", "dog", "barks]", "so", "it", "is"]
    others = [replace(cue, cue=None) for cue in CUES]
    assert align_text(characters, "u", NOISE, others, 0.5)[0].alignment.tier("words").labels == every
    keeping = Pipeline(model_of_characters(), text=TextOptions(keep_markup=True))
    assert align_text(keeping, "u", NOISE, CUES, 0.5)[0].alignment.tier("words").labels == every


def test_several_at_once_are_as_one_by_one(characters: Pipeline) -> None:
    given = [[Passage("so it")], [Passage("--")], [Passage("is"), Passage("on")]]
    found = align_texts(characters, "abc", [NOISE] * 3, given)
    assert found[1] is None
    for id, passages, one in zip("abc", given, found):
        if one is not None:
            alone = align_text(characters, id, NOISE, passages, 0.5)
            assert one[1] == alone[1]
            assert one[0].text == alone[0].text
            assert one[0].alignment.passages == alone[0].alignment.passages == numbered(passages)
