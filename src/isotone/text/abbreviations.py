"""English abbreviations, initials and Roman numerals, with the words that they are read as."""

from __future__ import annotations

import re

from isotone.text.clock import MONTHS, SHORT_MONTHS
from isotone.text.numbers import cardinal, ordinal, whole
from isotone.text.ways import distinct

_TABLE = """
mr: mister | mrs: missus, misses | ms: ms, miss | mx: mix, m x | dr: doctor, drive, d r | st: saint, street, s t
prof: professor, prof | jr: junior, j r | sr: senior, s r | rev: reverend, rev | hon: honorable, hon | fr: father, f r
gov: governor, gov | gen: general, gen | lt: lieutenant, l t | col: colonel, col | sgt: sergeant | capt: captain
cpl: corporal | maj: major | adm: admiral | cmdr: commander | sen: senator, sen | rep: representative, rep
pres: president | supt: superintendent | insp: inspector | messrs: messieurs | mme: madame | esq: esquire
bros: brothers | inc: incorporated, inc | corp: corporation, corp | ltd: limited, l t d | co: company, co | llc: l l c
dept: department | assn: association | univ: university, univ | inst: institute | govt: government
intl: international | ave: avenue, ave | blvd: boulevard | rd: road | ln: lane | hwy: highway | pkwy: parkway
sq: square | pl: place | apt: apartment, apt | bldg: building | rm: room | ste: suite | mt: mount, mountain
mts: mountains | ft: fort, feet | vs: versus, v s | v: v, versus | etc: et cetera | eg: for example, e g
ie: that is, i e | cf: compare, c f | al: al, others | viz: namely, viz | ca: circa, about, c a
approx: approximately, approx | est: established, estimated, e s t | ed: edition, editor, ed | vol: volume, vol
vols: volumes | pp: pages, p p | p: page, p | ch: chapter, c h | chap: chapter | sec: section, second, sec
fig: figure, fig | figs: figures | eq: equation | no: no, number | nos: numbers | art: article, art
misc: miscellaneous | tel: telephone, tel | temp: temperature, temp | max: maximum, max
min: minimum, minute, minutes, min | avg: average | qty: quantity | pkg: package | ext: extension | attn: attention
asst: assistant | mgr: manager | jan: january, jan | feb: february, feb | mar: march, mar | apr: april, apr
jun: june, jun | jul: july, jul | aug: august, aug | sep: september, sep | sept: september, sept | oct: october, oct
nov: november, nov | dec: december, dec | mon: monday, mon | tue: tuesday | tues: tuesday | wed: wednesday, wed
thu: thursday | thur: thursday | thurs: thursday | fri: friday | sat: saturday, sat | sun: sunday, sun | a.m: a m, am
p.m: p m, pm | e.g: for example, e g | i.e: that is, i e | ph.d: p h d, doctor of philosophy | phd: p h d
m.d: m d, doctor of medicine | u.s: u s, united states | u.k: u k, united kingdom | u.n: u n, united nations
b.c: b c, before christ | a.d: a d, anno domini | d.c: d c | w/: with | w/o: without | b/c: because | c/o: care of
n/a: not applicable, n a, not available | a/c: a c, air conditioning | 24/7: twenty four seven
9/11: nine eleven, september eleventh | 50/50: fifty fifty | am: am, a m | pm: p m
wwi: world war one, w w i, w w one | wwii: world war two, w w i i, w w two | ww1: world war one, w w one
ww2: world war two, w w two | km/h: kilometers per hour, k m h | kph: kilometers per hour, k p h
mph: miles per hour, m p h | m/s: meters per second | n°: number | op: opus, op | pt: part, pint, point, p t
mk: mark, m k | c: circa, about, c | b: born, b | d: died, d
"""
_ORDINARY = """
gen col rep sen rev hon ave apt fig art ed al no min max sec temp sat sun mar jan dec mon wed jun ext ch am co pl p
v est ca inst fr gov ste pres lb pp eq adm sq ms
"""
_WITH_NUMERALS = """
act appendix article book canto chapter class grade level mark part phase psalm scene section stage title type volume
vol war alexander catherine charles edward elizabeth ferdinand francis frederick george henry james leo louis mary
napoleon nicholas paul peter philip pius richard william
"""
#: Words before a numeral of one letter: what is counted, and kings and queens of whom there are several.
_COUNTED = frozenset(_WITH_NUMERALS.split())
#: Abbreviations that are none unless a number follows, with a point before it or in small letters.
_BEFORE_NUMBERS = frozenset({"op", "pt", "mk", "c", "b", "d"})
#: Words that are abbreviations without a point as well, where a number follows.
_NUMBERED = frozenset({"no", "fig", "ch", "apt", "sec", "art", "ext", "p", "pp", "eq"})
#: Abbreviations that are words as well: only with a point, or in capitals, are they something else.
_WORDS = frozenset(_ORDINARY.split())
_ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_SMALL = re.compile(r"x{0,2}(?:ix|iv|v?i{0,3})")
_INITIALS = re.compile(r"((?:[A-Za-z]\.){2,}[A-Za-z]?)('s)?")
_ACRONYM = re.compile(r"([A-Z]{2,5})('?s)?")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def _parsed() -> dict[str, list[str]]:
    rows = (row.split(":", 1) for line in _TABLE.strip().splitlines() for row in line.split("|"))
    return {short.strip(): [reading.strip() for reading in full.split(",")] for short, full in rows}


ABBREVIATIONS = _parsed()
_DAYS = frozenset({*MONTHS, *(full[0] for full in ABBREVIATIONS.values() if full[0].endswith("day"))})
_CALENDAR = frozenset(short for short, full in ABBREVIATIONS.items() if full[0] in _DAYS)


def abbreviated(core: str, point: bool, before: str, after: str) -> list[str]:
    """List the readings of an abbreviation, the likeliest first; none for other words.

    Args:
        core: A word without the punctuation around it, as written.
        point: A point follows it.
        before, after: The words beside it, as written; empty at the ends.
    """
    key = core.lower()
    found = ABBREVIATIONS.get(key, [])
    numbered = after.lstrip("#")[:1].isdigit()
    if key in _BEFORE_NUMBERS:
        return [*found, key] if point and numbered else []
    if found and key in _NUMBERED and not point and numbered:
        first = found[:0:-1] if key == "no" else found
        return distinct([*first, key] if core.istitle() else [key, *first])
    if not found or (key in _WORDS and not point and not core.isupper()):
        return []
    if key in ("dr", "st", "ft", "mt") and before[:1].isalpha() and not after[:1].isupper():
        return [found[1], found[0], *found[2:]]  # "Elm St.", but "St. Louis"
    if key == "no":
        return found[::-1] if after[:1].isdigit() else found
    if (
        key in ("mar", "may", "sat", "sun", "sec", "min", "am", "max", "jan")
        and not (after or before)[:1].isdigit()
    ):
        return [*found[1:], found[0]] if not point else found
    return [*found, key] if key in _WORDS and key.isalpha() else found


def numeral(core: str, before: str = "") -> list[str]:
    """List the readings of a Roman numeral: a number, a rank, its letters.

    One letter is a numeral after words that are counted, and V and X after names. From XL on it may be a word.

    Args:
        core: A word as written.
        before: The word before it.
    """
    upper = core.upper()
    if not (core and set(upper) <= _VALUES.keys() and (_ROMAN.fullmatch(core) or _SMALL.fullmatch(core))):
        return []
    values = [_VALUES[letter] for letter in upper]
    number = sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0]))
    letters = " ".join(core.lower())
    named = [cardinal(number), f"the {ordinal(number)}", ordinal(number), letters]
    counted = before.strip(".,").lower() in _COUNTED
    if core in ("vi", "xi", "xx") and not counted:
        return []
    if len(core) == 1:
        if not (counted or (core in ("V", "X") and before[:1].isupper())):
            return []
        named = [*named[:3], letters] if counted and upper != "I" else [letters, *named[:3]]
        return [*named, "versus"] if core == "V" else named
    if number < 40:
        return named
    return [core.lower(), letters, *whole(str(number))[:3]] if len(core) > 2 else []


def calendar(core: str) -> list[str]:
    """List the readings of a day of the week or a month, also where it is abbreviated without a point; else none."""
    lower = core.strip(".").lower()
    if not core.istitle():
        return []
    return (
        distinct([*ABBREVIATIONS[lower], lower]) if lower in _CALENDAR else [lower] if lower in _DAYS else []
    )


def initials(core: str, shouted: bool) -> list[str]:
    """List the readings of letters with points (``U.S.``), and of a word in capitals; none for other words.

    Args:
        core: A word as written.
        shouted: The text has no small letters: a word in capitals is then a word.
    """
    if match := _INITIALS.fullmatch(core):
        letters, ending = match[1].replace(".", "").lower(), match[2] or ""
        return distinct([" ".join(letters) + ending, letters + ending if len(letters) > 2 else ""])
    if (match := _ACRONYM.fullmatch(core)) and not shouted:
        return [core.lower(), " ".join(match[1].lower()) + ("'s" if match[2] else "")]
    return []


def month(core: str) -> str:
    """Return the month that a word names, also by its beginning; empty for other words."""
    key = core.strip(".,;:()").lower()
    return SHORT_MONTHS.get(key) or (key if key in SHORT_MONTHS.values() else "")
