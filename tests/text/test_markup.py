"""Known markup is removed, speech stays, and positions refer to the source."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isotone.text.markup import bracketed, clean, described, unclear

#: What a text may be made of, in any order.
SNIPPETS = [
    "[laughs]", "(coughs)", "<b>", "</i>", "SPEAKER 1:", "JOHN:", ">>", "[00:12]", "00:01:02.5", "♪", "*sighs*", "*",
    "<star>", "[inaudible]", "[she said]", "{\\an8}", "<v Ann>", "<br/>", "\n", " ", ".", ",", "so", "It's", "Café",
    "21", "3,50 €", "well-known", "你好", "ß", "[[", "(((",
]  # fmt: skip
lively = st.lists(st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=3)), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "left", "said"),
    [
        ("so [laughs] it", "so it", ["[laughs]"]),
        ("so (coughs softly), it (clears throat)", "so , it", ["(coughs softly)", "(clears throat)"]),
        ("*sighs* so {breath} <noise> it [[MUSIC PLAYING]]", "so it",
         ["*sighs*", "{breath}", "<noise>", "[[MUSIC PLAYING]]"]),
        ("[Musik] so [Applaudissements] ♪ it ♪", "so it", ["[Musik]", "[Applaudissements]", "♪"]),
        ("<b>bo</b>ld, <i>no</i>.", "bold, no.", ["<b>", "</b>", "<i>", "</i>"]),
        ('<v Ann Lee>so</v> <font color="red">it</font> {\\an8}is<br>me', "so it is me",
         ["<v Ann Lee>", "</v>", '<font color="red">', "</font>", "{\\an8}", "<br>"]),
        ("a <00:00:01.500>b <00:02.000><c>c</c>", "a b c", ["<00:00:01.500>", "<00:02.000>", "<c>", "</c>"]),
        ("SPEAKER 1: so\nSpeaker_02: it\nInterviewer: is", "so it is", ["SPEAKER 1:", "Speaker_02:", "Interviewer:"]),
        ("JOHN: so\n  MARY ANN: it\n>> DR. WHO: is\n>>> me", "so it is me",
         ["JOHN:", "MARY ANN:", ">>", "DR. WHO:", ">>>"]),
        ("[00:01] so [00:02:03.5] it\n(10:30) is\n00:01:02,500 - 00:01:03,000 me", "so it is me",
         ["[00:01]", "[00:02:03.5]", "(10:30)", "00:01:02,500 - 00:01:03,000"]),
        ("[00:12] JOHN: so", "so", ["[00:12]", "JOHN:"]),
        ("- JOHN: so\n<i>\u2013MARY: it</i>\n-- >> is", "- so \u2013 it -- is",
         ["JOHN:", "<i>", "MARY:", "</i>", ">>"]),
        ("Speaker 1 (00:12): so", "so", ["Speaker 1 (00:12):"]),
    ],
)  # fmt: skip
def test_markup_is_left_out_and_listed(text: str, left: str, said: list[str]) -> None:
    found = clean(text)
    assert " ".join(found.text.split()) == left
    assert list(found.left_out) == said
    assert clean(text, keep=True).text == text
    assert clean(text, keep=True).left_out == ()


@pytest.mark.parametrize(
    "text",
    [
        "so (he said) it", "he [John] came", "(music, painting and laughs)", "2 < 3 and 4 > 3", "a * b", "so * it *",
        "<star> so", "she laughs", "10:30 is the time", "at (10:30) so", "Remember: so", "so JOHN: it", "NOTE: so it",
        "HE SAID: COME", "It was 5: so", "John: hi", "[door slams]", "[inaudible] so", "http://so.it", "*so it*",
        "\n\n", "",
    ],
)  # fmt: skip
def test_what_may_be_speech_stays(text: str) -> None:
    assert clean(text).text == text
    assert clean(text).left_out == ()


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("so [inaudible] it", [(3, 14)]),
        ("[crosstalk 00:04:10] <unk> (unintelligible speech)", [(0, 20), (21, 26), (27, 50)]),
        ("(he was unclear) inaudible [speech]", []),
    ],
)
def test_speech_that_was_not_understood(text: str, places: list[tuple[int, int]]) -> None:
    assert list(unclear(text)) == places


@pytest.mark.parametrize(
    ("cue", "found"),
    [
        ("[door slams]", ["[door slams]"]),
        ("[man on radio,\nindistinct words] so [he] it", ["[man on radio,\nindistinct words]", "[he]"]),
        ("- <i>(door slams)</i>\n- so", ["(door slams)"]),
        ("so\nJOHN: (door slams) ♪", ["(door slams)"]),
        ("(WOMAN SCREAMS) so (DOOR SLAMS) it", ["(WOMAN SCREAMS)", "(DOOR SLAMS)"]),
        ("- (WHISPERING) so", ["(WHISPERING)"]),
        ("(DOOR SLAMS)", ["(DOOR SLAMS)"]),
        ("(JOHN): so\n[ANN]: it", ["(JOHN):", "[ANN]:"]),
        ("so (he said) it", []),
        ("(he said) so", []),
        ("the union (EU) so", []),
        ("SO (HE SAID) IT", []),
        ("[laughs] [inaudible] [00:12] [...] [] so", []),
    ],
)
def test_descriptions_in_subtitles(cue: str, found: list[str]) -> None:
    assert [cue[first:last] for first, last in described(cue)] == found


def test_other_brackets_are_known() -> None:
    assert bracketed("[door slams] (so) {he said} [door slams] [...] <b>") == ["[door slams]", "{he said}"]


@given(text=lively)
@example(text="[00:12] so")
def test_places_are_those_of_the_source(text: str) -> None:
    found = clean(text)
    assert len(found.positions) == len(found.text)
    assert list(found.positions) == sorted(set(found.positions))
    for character, place in zip(found.text, found.positions):
        assert text[place] == character or character == " "
    kept = {p for p, c in zip(found.positions, found.text) if text[p] == c}
    gone = "".join(c for i, c in enumerate(text) if i not in kept)
    assert (gone == "") == (found.left_out == ())
