"""Codes of languages (ISO 639), and the language that a model's files name."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# ISO 639-1 codes, each with the ISO 639-3 code of the same language.
_PAIRS = """
aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara as:asm av:ava ay:aym az:aze ba:bak be:bel bg:bul bi:bis bm:bam
bn:ben bo:bod br:bre bs:bos ca:cat ce:che ch:cha co:cos cr:cre cs:ces cv:chv cy:cym da:dan de:deu dv:div dz:dzo ee:ewe
el:ell en:eng eo:epo es:spa et:est eu:eus fa:fas ff:ful fi:fin fj:fij fo:fao fr:fra fy:fry ga:gle gd:gla gl:glg gn:grn
gu:guj gv:glv ha:hau he:heb hi:hin ho:hmo hr:hrv ht:hat hu:hun hy:hye hz:her ia:ina id:ind ie:ile ig:ibo ii:iii ik:ipk
io:ido is:isl it:ita iu:iku ja:jpn jv:jav ka:kat kg:kon ki:kik kj:kua kk:kaz kl:kal km:khm kn:kan ko:kor kr:kau ks:kas
ku:kur kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit lu:lub lv:lav mg:mlg mh:mah mi:mri mk:mkd
ml:mal mn:mon mr:mar ms:msa mt:mlt my:mya na:nau nb:nob nd:nde ne:nep ng:ndo nl:nld nn:nno no:nor nr:nbl nv:nav ny:nya
oc:oci oj:oji om:orm or:ori os:oss pa:pan pi:pli pl:pol ps:pus pt:por qu:que rm:roh rn:run ro:ron ru:rus rw:kin sa:san
sc:srd sd:snd se:sme sg:sag si:sin sk:slk sl:slv sm:smo sn:sna so:som sq:sqi sr:srp ss:ssw st:sot su:sun sv:swe sw:swa
ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn to:ton tr:tur ts:tso tt:tat tw:twi ty:tah ug:uig uk:ukr ur:urd
uz:uzb ve:ven vi:vie vo:vol wa:wln wo:wol xh:xho yi:yid yo:yor za:zha zh:zho zu:zul
"""
_LONG = dict(pair.split(":") for pair in _PAIRS.split())
_SHORT = {long: short for short, long in _LONG.items()}

# Groups of languages (ISO 639-3's macrolanguages), and the member that models mean by the group's name.
_MEMBER = {
    "aze": "azj", "fas": "pes", "fil": "tgl", "kur": "kmr", "mlg": "plt", "mon": "khk", "msa": "zlm", "nep": "npi",
    "nor": "nob", "ori": "ory", "sqi": "als", "swa": "swh", "zho": "cmn",
}  # fmt: skip
_GROUP = {member: group for group, member in _MEMBER.items()}

# ISO 639-2/B codes, which come from English names, and their ISO 639-3 codes.
_ALIASES = """
alb:sqi arm:hye baq:eus bur:mya chi:zho cze:ces dut:nld fre:fra geo:kat ger:deu gre:ell ice:isl mac:mkd mao:mri may:msa
per:fas rum:ron slo:slk tib:bod wel:cym
"""
_OTHER = dict(pair.split(":") for pair in _ALIASES.split())

_NONE = frozenset({"mul", "und", "zxx", "mis"})


def iso_code(tag: object) -> str:
    """Return the language of a tag as its ISO 639-1 code, else its ISO 639-3 code; empty if the tag names none.

    Example:
        >>> [iso_code(tag) for tag in ("en-US", "deu", "cmn-script_simplified", "multilingual", "hsb")]
        ['en', 'de', 'zh', '', 'hsb']
    """
    head = re.split(r"[-_]", str(tag).strip().lower(), maxsplit=1)[0]
    if not re.fullmatch("[a-z]{2,3}", head) or head in _NONE:
        return ""
    if len(head) == 2:
        return head if head in _LONG else ""
    head = _OTHER.get(head, head)
    return _SHORT.get(head) or _SHORT.get(_GROUP.get(head, "")) or head


def language_code(requested: str) -> str:
    """Return the :func:`iso_code` of a requested language; ValueError if it is not a code."""
    if code := iso_code(requested):
        return code
    raise ValueError(f"a language is asked for by its ISO 639 code, such as de or deu; got {requested!r}.")


def spoken_language(folder: Path, requested: str = "") -> str:
    """Return the language of a model as :func:`iso_code` does; empty if unknown.

    The sources, in order: the requested language; the tokenizer's ``target_lang`` or ``phonemizer_lang``; a
    ``language`` in the tokenizer's or the model's configuration; the metadata of the model card, ``README.md``. A list
    of several languages counts as unknown.

    Args:
        folder: The model's files.
        requested: A code of the language, from the user.

    Raises:
        ValueError: the requested language is not a code.
    """
    if requested:
        return language_code(requested)
    tokenizer = _json(folder / "tokenizer_config.json")
    named: list[Any] = [tokenizer.get(key) for key in ("target_lang", "phonemizer_lang", "language")]
    named += [_json(folder / "config.json").get("language"), _of_card(folder / "README.md")]
    for value in named:
        tags = value if isinstance(value, list) else [value]
        if len(tags) == 1 and tags[0] and (code := iso_code(tags[0])):
            return code
    return ""


def spoken_target(folder: Path) -> str:
    """Return the language that a multilingual model's tokenizer is set to; empty if it is not set."""
    return str(_json(folder / "tokenizer_config.json").get("target_lang") or "")


def among(requested: str, known: Sequence[str]) -> str:
    """Find a requested language among a model's languages, by the model's name for it or by an ISO 639 code.

    Args:
        requested: ``"deu"``, ``"de"``, ``"azj-script_latin"`` ...
        known: ISO 639-3 codes, some with a script: ``"azj-script_latin"``.

    Raises:
        ValueError: it is none of them, or several with different scripts; the message lists similar ones.
    """
    if requested in known:
        return requested
    head = requested.strip().lower().replace("_", "-").split("-")[0]
    long = _LONG.get(head, _OTHER.get(head, head))
    for code in (long, _MEMBER.get(long, long)):
        found = sorted(name for name in known if name.split("-")[0] == code)
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(
                f"The model has {requested!r} in several scripts: take one of {', '.join(found)}."
            )
    near = difflib.get_close_matches(long, known, n=5, cutoff=0.5) or sorted(known)[:5]
    raise ValueError(
        f"The model has no language {requested!r}. Near it are {', '.join(near)}, of {len(known)} (ISO 639-3)."
    )


def _of_card(path: Path) -> Any:
    """Return the ``language`` in the metadata of a model card; None if there is none."""
    import yaml  # type: ignore[import-untyped]

    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    if not (header := re.match(r"\ufeff?---\s*\n(.*?)\n---\s*(?:\n|$)", text, re.DOTALL)):
        return None
    try:
        data = yaml.safe_load(header[1])
    except yaml.YAMLError:
        return None
    value = data.get("language") if isinstance(data, dict) else None
    # YAML reads the code of Norwegian, no, as False
    return "no" if value is False else value


def _json(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if that fails, since the code that needs the file reports it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
