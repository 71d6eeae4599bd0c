"""Readings of written forms: what people say for them is listed, and what is listed means what is written."""

# ruff: noqa: RUF001
from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.text.normalize import normalize, split_words
from isotone.text.numbers import whole
from isotone.text.ways import MOST_READINGS
from tests.text.test_normalize import UNITS, value


def ways(text: str) -> list[str]:
    """All readings of a text, those of its words combined."""
    found = [""]
    for word in split_words(text):
        found = [f"{before} {way}".strip() for before in found for way in word.readings]
    return found


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1984", "nineteen eighty four; one thousand nine hundred eighty four; one nine eight four"),
        ("1905", "nineteen oh five; nineteen hundred five; nineteen hundred and five"),
        ("2016", "twenty sixteen; two thousand sixteen; two thousand and sixteen"),
        ("2000", "two thousand"),
        ("747", "seven forty seven; seven hundred forty seven; seven hundred and forty seven; seven four seven"),
        ("1,500", "one thousand five hundred; fifteen hundred; a thousand five hundred"),
        ("007", "zero zero seven; oh oh seven; double oh seven"),
        ("the 1980s '90s", "the nineteen eighties nineties"),
        ("3.14", "three point one four; three point fourteen"),
        ("0.5", "zero point five; point five; half"),
        ("2.5", "two point five; two and a half"),
        ("1.2.3", "one point two point three; one dot two dot three; one two three"),
        ("-5", "minus five; negative five"),
        ("$5.20", "five dollars and twenty cents; five dollars twenty; five twenty"),
        ("$1", "one dollar; a dollar"),
        ("£2.50", "two pounds fifty; two pounds and fifty pence"),
        ("$3.5M", "three point five million dollars; three and a half million dollars"),
        ("$3 million", "three million dollars"),
        ("12:30", "twelve thirty; half past twelve"),
        ("9:05", "nine oh five; five past nine; five minutes past nine"),
        ("9:45", "nine forty five; quarter to ten; a quarter to ten"),
        ("8:00", "eight o'clock; eight"),
        ("14:20", "fourteen twenty; two twenty; twenty past two"),
        ("1:02:33", "one oh two thirty three; one hour two minutes and thirty three seconds"),
        ("5pm 5 p.m.", "five p m five p m"),
        ("3/4", "three quarters; three fourths; three over four; three four; march fourth; the third of april"),
        ("1/2", "one half; half; a half"),
        ("5 1/2", "five and a half; five one half"),
        ("24/7", "twenty four seven"),
        ("May 5", "may fifth; may five; may the fifth"),
        ("5 May", "the fifth of may; fifth may; five may"),
        ("2014-05-12", "may twelfth twenty fourteen; twenty fourteen oh five twelve"),
        ("12.5.2014", "the twelfth of may twenty fourteen"),
        ("21st", "twenty first; the twenty first"),
        ("Henry VIII", "henry the eighth; henry eight"),
        ("Dr. Smith", "doctor smith"),
        ("Elm Dr.", "elm drive"),
        ("St. Paul", "saint paul"),
        ("Elm St.", "elm street"),
        ("No. 5", "number five"),
        ("no.", "no"),
        ("vs. etc. e.g.", "versus et cetera for example"),
        ("the US", "the us; the u s"),
        ("U.K. NASA", "u k nasa; united kingdom nasa"),
        ("by AT&T", "by a t and t"),
        ("5 km 1 km 60 mph", "five kilometers one kilometer sixty miles per hour; five k m one kilometer sixty m p h"),
        ("10kg", "ten kilograms; ten k g"),
        ("25°C", "twenty five degrees celsius; twenty five celsius; twenty five degrees"),
        ("6'2\"", "six foot two; six feet two inches; six two"),
        ("75%", "seventy five percent"),
        ("R&D", "r and d"),
        ("2 + 2 = 4", "two plus two equals four; two and two is four"),
        ("@ #MeToo", "at hashtag me too; at me too"),
        ("anna@mail.com", "anna at mail dot com"),
        ("https://www.example.com/", "w w w dot example dot com; example dot com"),
        ("www.x-y.org", "w w w dot x dash y dot org; w w w dot x hyphen y dot org; w w w dot x y dot org"),
        ("555-1234", "five five five one two three four; five five five twelve thirty four"),
        ("10-12", "ten to twelve; ten twelve"),
        ("1914–1918", "nineteen fourteen to nineteen eighteen; nineteen fourteen nineteen eighteen"),
        ("3-year-old", "three year old"),
        ("COVID-19", "covid nineteen"),
        ("№5 Nike™", "number five nike"),
        ("$22,232.87", "twenty two thousand two hundred thirty two dollars and eighty seven cents"),
        ("A5m2", "a five m two"),
        ("No.5 p.5", "number five page five; no five p five"),
        ("no 5", "no five; number five"),
        ("No 5 N° 5", "number five number five"),
        ("Fig 3 Apt 5B", "figure three apartment five b"),
        ("c. 1900", "circa nineteen hundred; c nineteen hundred"),
        ("Op. 27", "opus twenty seven"),
        ("St.Louis Dr.Who", "saint louis doctor who"),
        ("v2.0", "v two point zero; version two point oh"),
        ("$1.2 bn £5 m", "one point two billion dollars five million pounds"),
        ("$5-10", "five to ten dollars; five dollars to ten"),
        ("$5–$10", "five dollars to ten dollars"),
        ("£3-4m", "three to four million pounds"),
        ("$5/month", "five dollars per month; five dollars a month; five dollars month"),
        ("US$5 C$5", "five u s dollars five canadian dollars; five dollars five dollars"),
        ("50p 5c", "fifty pence five cents; fifty p five c"),
        ("100 EUR", "one hundred euros"),
        ("6ft2", "six foot two; six feet two; six feet two inches; six square feet"),
        ("5'", "five feet; five"),
        ("12″", "twelve inches; twelve"),
        ("1½", "one and a half; one and one half"),
        ("½ ¼", "half a quarter; one half one quarter"),
        ("2/3rds 7/8ths", "two thirds seven eighths"),
        ("9am-5pm", "nine a m to five p m; nine a m five p m"),
        ("9.30am", "nine thirty a m; half past nine a m"),
        ("9:00am", "nine a m"),
        ("1h30", "one hour thirty; one hour thirty minutes"),
        ("30m", "thirty minutes; thirty meters; thirty million"),
        ("0900", "oh nine hundred; zero nine zero zero"),
        ("1st–3rd", "first to third; the first to the third; first third"),
        ("5%-10%", "five percent to ten percent"),
        ("3-0", "three nil; three zero; three to nil"),
        ("Mon-Fri", "monday to friday; monday through friday; mon fri"),
        ("Jan–Mar", "january to march; january march"),
        ("Dec 25", "december twenty fifth; dec twenty five"),
        ("C# F#", "c sharp f sharp"),
        (".NET", "dot net; net"),
        ("10⁶ x² 10⁻³", "ten to the sixth x squared ten to the minus three"),
        ("word¹", "word; word one"),
        ("5 m² 5m²", "five square meters five square meters"),
        ("+5% 18+", "plus five percent eighteen plus; five percent eighteen or more"),
        ("p<0.05", "p less than zero point oh five"),
        ("≥5 ~50", "at least five about fifty; at least five approximately fifty"),
        ("TNF-α π", "t n f alpha pi"),
        ("20C", "twenty degrees celsius; twenty degrees; twenty c"),
        ("5G 1.5M", "five g one point five million"),
        ("10x", "ten x; ten times"),
        ("WWII", "world war two; w w two"),
        ("Chapter I", "chapter one; chapter i"),
        ("George V", "george the fifth; george five"),
        ("Scene ii", "scene two"),
        ("MMXX", "twenty twenty"),
        ("iOS", "i o s; ios"),
        ("500 sq ft", "five hundred square feet"),
        ("10 000", "ten thousand"),
        ("1:10,000", "one to ten thousand"),
        ("1-800-555-1234", "one eight hundred five five five one two three four"),
        ("978-3-16", "nine seven eight three one six; nine seven eight dash three dash one six"),
        ("192.168.0.1", "one nine two dot one six eight dot zero dot one"),
        ("rock'n'roll", "rock'n'roll; rock and roll"),
        ("U.S.'s", "u s's"),
        ("Grade A-", "grade a minus; grade a"),
    ],
)  # fmt: skip
def test_what_people_say_is_listed(written: str, said: str) -> None:
    found = ways(written)
    assert [way for way in said.split("; ") if way not in found] == []
    assert normalize(written) == found[0]
    shown = "".join(word.text for word in split_words(written))
    assert "".join(shown.split()) == "".join(written.split())


ORDINARY = "Hello it's well-known I A may In no am is Am O'Brien vi Sun Mon-petit Ωμέγα"


@pytest.mark.parametrize("plain", ORDINARY.split())
def test_ordinary_words_have_one_reading(plain: str) -> None:
    assert len(ways(plain)) == 1


def test_a_text_in_capitals_has_no_abbreviations_by_capitals() -> None:
    assert ways("WE SAW US THERE") == ["we saw us there"]


def digits_of(words: list[str]) -> set[str]:
    """All strings of digits that words may mean, as an independent inverse: numbers side by side."""
    if not words:
        return {""}
    found = set()
    for size in range(1, len(words) + 1):
        group = [w for w in words[:size] if w != "and"]
        if group == ["oh"]:
            first = "0"
        elif all(w in UNITS or w in ("hundred", "thousand") for w in group) and is_number(group):
            first = str(value(" ".join(group)))
        else:
            continue
        found |= {first + rest for rest in digits_of(words[size:])}
    return found


def is_number(group: list[str]) -> bool:
    """Return whether words are one number, which is said in falling order."""
    below_hundred = [w for w in group if w in UNITS]
    return (
        bool(below_hundred)
        and not any(UNITS.get(a, 100) < 20 and b in UNITS for a, b in pairwise(group))
        and not any(UNITS.get(b, 0) > 9 for a, b in pairwise(group) if a in UNITS)
    )


@settings(max_examples=200, deadline=None)
@given(number=st.integers(0, 9999))
def test_every_reading_means_its_digits(number: int) -> None:
    for reading in whole(str(number)):
        words = [{"a": "one", "nought": "zero", "nil": "zero"}.get(word, word) for word in reading.split()]
        meant = digits_of(words) | {str(value(" ".join(w for w in words if w not in ("and", "oh"))))}
        assert str(number) in meant, reading


def test_numbers_of_any_length_are_read() -> None:
    for ending in ("", "th", "s", ".50", " km"):
        assert ways("1" * 5000 + ending), ending


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("0123456789.,:/-$£%°'+#@&x kmAB’s–"), min_size=1, max_size=14))
def test_any_expression_has_readings_in_letters(text: str) -> None:
    for word in split_words(text):
        assert 1 <= len(word.readings) <= MOST_READINGS
        assert len(set(word.readings)) == len(word.readings)
        assert not any(c.isascii() and c.isdigit() for way in word.readings for c in way)
