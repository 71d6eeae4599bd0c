"""TIMIT phones of espeak-ng's mnemonics."""

from __future__ import annotations

#: Label of a pause inside a sentence.
PAUSE = "_"

#: espeak-ng's en-us mnemonics, and the TIMIT phone of each.
TIMIT: dict[str, str] = {
    PAUSE: "pau",
    "p": "p", "b": "b", "t": "t", "t2": "t", "d": "d", "d#": "d", "t#": "dx", "k": "k", "g": "g", "?": "q",
    "tS": "ch", "dZ": "jh", "f": "f", "v": "v", "T": "th", "D": "dh", "s": "s", "z": "z", "S": "sh",
    "Z": "zh", "h": "hh", "x": "hh", "C": "hh", "m": "m", "n": "n", "n^": "n", "N": "ng", "l": "l", "l#": "l",
    "r": "r", "r-": "r", "w": "w", "w#": "w", "j": "y", "@L": "el", "l-": "el", "n-": "en", "m-": "em",
    "i:": "iy", "i": "iy", "I": "ih", "I2": "ix", "I#": "ix", "eI": "ey", "e": "eh", "E": "eh", "a": "ae",
    "aa": "ae", "A:": "aa", "0": "aa", "O:": "ao", "O": "ao", "O2": "ao", "V": "ah", "U": "uh", "u:": "uw",
    "u": "uw", "aU": "aw", "aI": "ay", "OI": "oy", "oU": "ow", "3:": "er", "3": "axr",
    "@": "ax", "@-": "ax", "@2": "ax", "@5": "ax", "@#": "ax", "a#": "ax",
}  # fmt: skip

#: Vowels that are one unit in espeak-ng and two phones in TIMIT, with the first phone's share of the time. The second
#: begins where the third formant (for a schwa, the second) has made half of its movement in espeak-ng's spectra of
#: the vowel (phsource/vwl_en_us/aar, oor, er, ir, ur, ai3, ai@, aU@; vdiph2/ii@).
TWO_PHONES: dict[str, tuple[str, str, float]] = {
    "A@": ("aa", "r", 0.59), "O@": ("ao", "r", 0.52), "o@": ("ao", "r", 0.52), "e@": ("eh", "r", 0.60),
    "i@3": ("ih", "r", 0.55), "U@": ("uh", "r", 0.68), "aU@": ("aw", "axr", 0.73), "aI3": ("ay", "axr", 0.62),
    "aI@": ("ay", "ax", 0.80), "i@": ("iy", "ax", 0.68), "A~": ("aa", "n", 0.60), "O~": ("ao", "n", 0.60),
}  # fmt: skip


class UnmappedPhone(ValueError):
    """An espeak-ng mnemonic without a counterpart in the TIMIT phone set."""


def to_timit(mnemonic: str) -> tuple[tuple[str, float], ...]:
    """Return the TIMIT phones (of the 61) of a mnemonic of espeak-ng's en-us, with their shares of its time.

    Closures are not separate: ``t`` stands for TIMIT's ``tcl t``. Vowels that are one unit in espeak-ng (``A@``, as in
    *car*) are two phones, cut at a fixed share of their length: where the third formant has made half of its movement
    in espeak-ng's spectra.

    Raises:
        UnmappedPhone: the mnemonic is not one of the en-us voice.
    """
    mnemonic = mnemonic.partition("/")[0]  # allophones: l/2, r/ ...
    if mnemonic not in TIMIT and mnemonic.endswith(":"):  # lengthened by the dictionary
        mnemonic = mnemonic[:-1]
    if mnemonic in TWO_PHONES:
        first, second, share = TWO_PHONES[mnemonic]
        return (first, share), (second, 1.0 - share)
    if mnemonic not in TIMIT:
        raise UnmappedPhone(
            f"espeak-ng's phoneme {mnemonic!r} is none of the voice en-us and has no TIMIT phone."
        )
    return ((TIMIT[mnemonic], 1.0),)
