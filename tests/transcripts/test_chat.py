"""CHAT is read as what was said."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.transcripts import TranscriptError, open_source
from isotone.transcripts.chat import words_of


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # speech that is not written as words
        ("xxx fell off .", "* fell off."),
        ("well , yyy www .", "well, * *"),
        ("xxx@s:spa , no .", "* no."),
        ("&+fr &ba frog", "* * frog"),
        ("I want &*MOT:careful it", "I want * it"),
        ("l\u025b\u027e\u026a@u [: later] [* p:n] on", "* on"),
        # what was said, and is no word of a dictionary
        ("&-um so &~gaga", "um so gaga"),
        ("um@fp gumma@c wug@t , Keks@s:deu+eng .", "um gumma wug, Keks."),
        ("b@l abc@k if@q-s", "b a b c if"),
        # events, pauses, what was left out, signs of the hands
        ("&=laughs so &{l=X it &}l=X", "so it"),
        ("a (.) b (..) c (...) d (1.5) e (1:05.3) f", "a b c d e f"),
        ("he 0is here 0 [=! whining] .", "he here."),
        ("apple@sl .", ""),
        # repetitions and corrections were said; what was meant was not
        ("<I want> [//] I need [/] need it .", "I want I need need it."),
        ("he goed [: went] [*] home [= house] [% com] [+ bch] .", "he goed home."),
        ("<it's a> [x 2] dog [*] [x 3] .", "it's a it's a dog dog dog."),
        ("[x 4] so [x 99999999999]", " ".join(["so"] * 50)),
        ("(be)cause he's runnin(g) (will) .", "cause he's runnin."),
        # utterances that trail off, are cut, or belong to others
        ("and then +...", "and then"),
        ("+< but I +/.", "but I"),
        ('+" I said so +"/.', "I said so"),
        ("<so it is> [>] ?", "so it is?"),
        ("[- spa] hola .", "hola."),
        # parts of words
        ("ice+cream in New_York", "ice-cream in New York"),
        ("no:: I do:n't wa:nt ja^ja \u02c8hello le~ha", "no I don't want jaja hello leha"),
        ("he\u2191llo \u00b0soft\u00b0 \u2308so\u2309 \u230a2 it\u230b2 no \u2021 yes", "hello soft so it no yes"),
        ("want$v \x02\x01so\x02\x02", "want so"),
        ("\u201chello\u201d [=! softly] , 200 at 10:30 .", "\u201chello\u201d, 200 at 10:30."),
    ],
)  # fmt: skip
def test_codes_of_a_main_line(line: str, said: str) -> None:
    assert words_of(line) == said


def test_in_conversation_analysis_brackets_are_of_words_that_were_hard_to_hear(tmp_path: Path) -> None:
    for options, said in (("", "so"), ("@Options:\tCA\n", "ja so")):
        (tmp_path / "a.cha").write_text(
            f"@UTF8\n@Begin\n{options}*ANN:\t(ja) so\n@End\n" + "\n" * len(options)
        )
        (found,) = open_source(tmp_path / "a.cha").passages
        assert found.text == said


def chat(folder: Path, *lines: str) -> Path:
    path = folder / "talk.cha"
    rows = ("@UTF8", "@Begin", "@Participants:\tCHI Target_Child, MOT Mother", *lines, "@End", "")
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_utterances_with_their_times_and_speakers(tmp_path: Path) -> None:
    path = chat(
        tmp_path,
        "*CHI:\tI want \x15100_900\x15 a &=coughs",
        "\tcookie . \x15900_2500\x15",
        "%mor:\tpron|I verb|want",
        "%wor:\tI \x15100_300\x15 want \x15300_900\x15",
        "@Comment:\tlater",
        "*MOT:\t&=laughs .",
        '*MOT:\txxx . \x15%snd:"talk.aif"_3000_4000\x15',
        "*CHI:\tno .",
    )
    found = open_source(path).passages
    assert [(p.text, p.start, p.end, p.speaker, p.where) for p in found] == [
        ("I want", 0.1, 0.9, "CHI", "line 4"), ("a cookie.", 0.9, 2.5, "CHI", "line 4"),
        ("*", 3.0, 4.0, "MOT", "line 10"), ("no.", None, None, "CHI", "line 11"),
    ]  # fmt: skip
    assert [p.text for p in open_source(path, ["MOT"]).passages] == ["*"]
    with pytest.raises(TranscriptError, match=r"'INV' \(--tier\); got 'CHI', 'MOT'"):
        open_source(path, ["INV"])


def test_what_is_no_chat(tmp_path: Path) -> None:
    with pytest.raises(
        TranscriptError, match=r"line 4: expected '\*SPEAKER:' and what was said; got '\*so it'"
    ):
        open_source(chat(tmp_path, "*so it"))
    (tmp_path / "b.cha").write_text("@UTF8\n@Begin\n@End\n")
    with pytest.raises(TranscriptError, match="no passages were found in it; expected a CHAT transcript"):
        open_source(tmp_path / "b.cha")
    (tmp_path / "c.txt").write_text("@UTF8\n@Begin\n*CHI:\tso .\n@End\n")
    assert [p.text for p in open_source(tmp_path / "c.txt").passages] == ["so."]
