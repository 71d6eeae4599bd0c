"""Readings of numbers, abbreviations and signs that are chosen by the audio, and the times of their words.

``python -m benchmarks.numbers`` prints the table: 200 sentences, in each of which a synthetic voice says one reading of
a written form. The text that is aligned has the written form. The reading is right if its words are those that were
said. The times of all words are compared with the synthesiser's, and with those of the same text written out.

``--flite`` takes Debian's ``flite`` for a second synthesiser, of which the readings alone are judged.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from isotone import audio as sound
from isotone.alignment import SILENCE, Tier
from isotone.corpus.voices import SAMPLE_RATE, record, speakers
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.text.espeak import Engine

#: A kind, a sentence with a gap, what is written there, and what can be said for it.
ITEMS = """
year | She was born in {} in a small town | 1984 = nineteen eighty four; one nine eight four; one thousand nine hundred eighty four
year | The house was built in {} by his father | 1905 = nineteen oh five; nineteen hundred and five; nineteen hundred five
year | They left the country in {} and never came back | 2016 = twenty sixteen; two thousand sixteen; two thousand and sixteen
year | The old bridge fell in {} after the storm | 1800 = eighteen hundred; one thousand eight hundred
year | He lived from {} in the same street | 1914-1918 = nineteen fourteen to nineteen eighteen; nineteen fourteen nineteen eighteen
year | The music of the {} is still played here | 1980s = nineteen eighties
year | The music of the {} is still played here | '90s = nineties
number | There were {} people in the room | 42 = forty two; four two
number | We counted {} birds on the lake | 250 = two hundred fifty; two hundred and fifty; two fifty
number | The train number is {} from the north | 747 = seven forty seven; seven four seven; seven hundred forty seven
number | Please open room {} for the guests | 305 = three oh five; three hundred five; three hundred and five; three zero five
number | The town has {} inhabitants today | 1,500 = one thousand five hundred; fifteen hundred; a thousand five hundred
number | It costs {} in the old money | 100 = one hundred; a hundred; one zero zero
number | The secret agent was called {} by everyone | 007 = double oh seven; zero zero seven; oh oh seven
number | The letter was sent to {} in the west | 90210 = nine oh two one oh; nine zero two one zero; ninety thousand two hundred ten
decimal | The value is {} in this table | 3.14 = three point one four; three point fourteen
decimal | It weighs {} pounds in all | 0.5 = zero point five; point five; oh point five
decimal | He waited {} hours for the bus | 2.5 = two point five; two and a half
decimal | The new version {} is out now | 1.2.3 = one point two point three; one dot two dot three; one two three
money | He paid {} for the sandwich | $5.20 = five dollars and twenty cents; five dollars twenty; five twenty; five dollars twenty cents
money | The coat was {} in the shop | $100 = one hundred dollars; a hundred dollars; a hundred bucks
money | She found {} under the table | £2.50 = two pounds fifty; two pounds and fifty pence; two fifty
money | The company lost {} last year | $3.5M = three point five million dollars; three and a half million dollars
money | They asked for {} a month | €750 = seven hundred fifty euros; seven hundred and fifty euros; seven fifty euros
money | He has only {} left in his pocket | $1 = one dollar; a dollar
time | The meeting begins at {} tomorrow morning | 9:30 = nine thirty; half past nine
time | The meeting begins at {} tomorrow morning | 10:15 = ten fifteen; quarter past ten; a quarter past ten; fifteen past ten
time | We will be home at {} for dinner | 6:45 = six forty five; quarter to seven; a quarter to seven
time | The bus leaves at {} from the station | 8:05 = eight oh five; five past eight; five minutes past eight
time | The shop closes at {} on Sunday | 7:00 = seven o'clock; seven
time | The shop closes at {} on Sunday | 5pm = five p m
time | The night train comes at {} every day | 14:20 = fourteen twenty; two twenty; twenty past two
date | The wedding is on {} in the garden | May 5 = May fifth; May five; May the fifth
date | The wedding is on {} in the garden | 12 June = the twelfth of June; twelfth June; twelve June
date | The letter arrived on {} as we hoped | 3/4 = March fourth; the third of April; three four; three slash four
date | The report is from {} and is too old | 5/12/2014 = May twelfth twenty fourteen; five twelve twenty fourteen; the fifth of December twenty fourteen
date | The report is from {} and is too old | 2014-05-12 = May twelfth twenty fourteen; twenty fourteen oh five twelve; the twelfth of May twenty fourteen
ordinal | This is the {} time that we meet | 21st = twenty first
ordinal | She lives on the {} floor of the house | 3rd = third
ordinal | King Henry {} had many wives | VIII = the eighth; eight
ordinal | World War {} was over by then | II = two; the second
fraction | Add {} cup of sugar to the water | 3/4 = three quarters; three fourths; three over four
fraction | The glass is {} full of milk | 1/2 = one half; half; a half
fraction | Only {} of the people came | 2/3 = two thirds; two out of three
unit | The lake is {} long and very deep | 5 km = five kilometers; five k m
unit | The bag weighs {} without the books | 10kg = ten kilograms; ten k g
unit | The car was driving at {} on the road | 60 mph = sixty miles per hour; sixty miles an hour; sixty m p h
unit | It was {} in the shade today | 25°C = twenty five degrees celsius; twenty five celsius; twenty five degrees
unit | About {} of the students passed | 75% = seventy five percent
unit | The boy is {} tall and still growing | 5'10" = five foot ten; five feet ten inches; five ten
unit | The film is in {} and very long | 4K = four k
abbreviation | We asked {} Smith about the pain | Dr. = doctor
abbreviation | They live on Garden {} near the church | Dr. = drive
abbreviation | The church of {} Mary is very old | St. = saint
abbreviation | He walked down Baker {} in the rain | St. = street
abbreviation | I met {} Brown at the party | Mr. = mister
abbreviation | Bring fruit, {} apples and pears | e.g. = for example; e g
abbreviation | It was home {} away in the last game | vs. = versus; v s
abbreviation | They sell bread, milk, {} at the corner | etc. = et cetera
abbreviation | The answer is in question {} 5 of the book | no. = number
abbreviation | He was working in the {} for a year | US = u s
abbreviation | The rule is now {} law | U.K. = u k; united kingdom
sign | Salt {} pepper are on the table | & = and
sign | We know that {} is four | 2 + 2 = two plus two; two and two
sign | We meet at the station {} noon on Friday | @ = at
web | Send it to {} before noon | anna@mail.com = anna at mail dot com
web | You can read it on {} for free | www.example.com = w w w dot example dot com; example dot com
web | You can read it on {} for free | https://example.com = example dot com; h t t p s colon slash slash example dot com
web | Everybody talks about {} these days | #MeToo = hashtag me too; me too
phone | You can call me at {} after lunch | 555-1234 = five five five one two three four; five five five twelve thirty four
phone | You can call me at {} after lunch | 202-555-0147 = two zero two five five five zero one four seven; two oh two five five five oh one four seven
range | Read the pages {} before Monday | 10-12 = ten to twelve; ten twelve
range | The team won {} at home | 3-1 = three one; three to one
"""


class Sentence(NamedTuple):
    """A sentence to be said.

    Attributes:
        kind: What is written in it.
        before, after: Its words around the written form.
        written, said: The written form, and the reading that is said.
    """

    kind: str
    before: list[str]
    after: list[str]
    written: str
    said: str


class Measured(NamedTuple):
    """The alignment of one sentence, with its text as written and as said.

    Attributes:
        right: The reading chosen is the one that is said.
        chosen: The reading chosen.
        errors: ``(words, 2)`` ms off at both ends of words, for the text as written.
        plain: The same for the text as said, of the same words.
    """

    right: bool
    chosen: str
    errors: np.ndarray
    plain: np.ndarray


def sentences(most: int) -> list[Sentence]:
    """List the sentences: of every item its first reading, then the second ones, and so on, over again for others."""
    rows = [[field.strip() for field in line.split("|")] for line in ITEMS.strip().splitlines()]
    found = []
    for rank in range(4):
        for kind, frame, forms in rows:
            written, _, said = forms.partition(" = ")
            readings = said.split(";")
            if rank < len(readings):
                before, after = (part.split() for part in frame.split("{}"))
                found.append(Sentence(kind, before, after, written.strip(), readings[rank].strip()))
    return [found[i % len(found)] for i in range(most)]


def spans(tier: Tier) -> list[tuple[float, float]]:
    """List the times of a tier's words in seconds."""
    return [(s.start, s.end) for s in tier if s.label not in SILENCE]


def joined(rows: list[tuple[float, float]], sizes: list[int]) -> np.ndarray:
    """Join neighbouring spans to ``(len(sizes), 2)``: groups of the given sizes, each from its first to its last."""
    ends = np.cumsum(sizes)
    return np.array([(rows[end - size][0], rows[end - 1][1]) for end, size in zip(ends, sizes)])


def measured(
    pipeline: Pipeline, sentence: Sentence, samples: np.ndarray, true: list[tuple[float, float]] | None
) -> Measured:
    """Align a sentence as written and as said; ``true`` are the times of the words that are said."""
    before, after, said = sentence.before, sentence.after, sentence.said.split()
    written = sentence.written.split()

    def align(words: list[str]) -> Tier:
        return pipeline.align("", samples, pipeline.encode(" ".join(words))).alignment.tier("words")

    tier = align([*before, *written, *after])
    own = tier.segments[len(before) : len(before) + len(written)]
    chosen = " ".join(s.origin.reading for s in own if s.origin)
    right = chosen == sentence.said.lower()
    if true is None:
        return Measured(right, chosen, np.zeros((0, 2)), np.zeros((0, 2)))
    shown = [len(before) * [1], [len(written)], len(after) * [1]]
    spoken = [len(before) * [1], [len(said)], len(after) * [1]]
    of_written = joined(spans(tier), sum(shown, []))
    of_spoken = joined(spans(align([*before, *said, *after])), sum(spoken, []))
    expected = joined(true, sum(spoken, []))
    return Measured(right, chosen, 1000 * abs(of_written - expected), 1000 * abs(of_spoken - expected))


def by_espeak(rows: list[Sentence]) -> Iterator[tuple[np.ndarray, list[tuple[float, float]] | None]]:
    """Say sentences with espeak-ng, by voices that the pack was not trained with; with the times of the words."""
    engine, people = Engine(11), speakers(4, 8, 2024)[1]
    for number, row in enumerate(rows):
        text = " ".join([*row.before, row.said, *row.after])
        heard = record(engine, people[number % len(people)], number, text, np.random.default_rng(number))
        times = [(word.start / SAMPLE_RATE, word.end / SAMPLE_RATE) for word in heard.words]
        yield heard.samples.astype(np.float32) / 32768, times


def by_flite(rows: list[Sentence]) -> Iterator[tuple[np.ndarray, list[tuple[float, float]] | None]]:
    """Say sentences with flite's voices, which do not tell the times of words."""
    voices = ("slt", "rms", "awb")
    with tempfile.TemporaryDirectory() as folder:
        for number, row in enumerate(rows):
            path = Path(folder) / "said.wav"
            text = " ".join([*row.before, row.said, *row.after])
            subprocess.run(["flite", "-voice", voices[number % 3], "-t", text, "-o", str(path)], check=True)
            yield sound.load(path, SAMPLE_RATE), None


def table(rows: list[Sentence], found: list[Measured]) -> Table:
    """Make the table: a row for each kind, and one for all."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        kinds[row.kind].append(i)
    shown = Table("kind", "sentences", "right %", "written: mean ms", "20 ms %", "said: mean ms", "20 ms %")
    for kind, own in [*kinds.items(), ("all", list(range(len(rows))))]:
        errors = [
            np.concatenate([getattr(found[i], name) for i in own]).ravel() for name in ("errors", "plain")
        ]
        cells = [f"{x:.1f}" if len(e) else "" for e in errors for x in (np.mean(e), 100 * np.mean(e < 20))]
        right = 100 * np.mean([found[i].right for i in own])
        shown.add_row(kind, str(len(own)), f"{right:.1f}", *cells)
    return shown


def main() -> None:
    """Print the table, and the sentences whose reading is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.numbers", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="english", help="the model")
    parser.add_argument("--sentences", type=int, default=200, help="number of sentences")
    parser.add_argument("--flite", action="store_true", help="voices of flite instead of espeak-ng's")
    options = parser.parse_args()
    pipeline = Pipeline(Model.load(options.model))
    rows = sentences(options.sentences)
    said = (by_flite if options.flite else by_espeak)(rows)
    found = [
        measured(pipeline, row, *heard)
        for row, heard in track(zip(rows, said), "Aligning", total=len(rows), transient=True)
    ]
    console = Console()
    console.print(table(rows, found))
    for row, one in zip(rows, found):
        if not one.right:
            console.print(f"{row.written}: said {row.said!r}, chosen {one.chosen!r}", markup=False)


if __name__ == "__main__":
    main()
