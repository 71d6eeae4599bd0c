"""English readings of addresses on the web, of mail, and of tags."""

from __future__ import annotations

import re

from isotone.text.numbers import whole
from isotone.text.ways import distinct

_ENDINGS = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|tv|uk|de|eu|fr|ca|au|nz|jp|cn|ru|ch|nl|se|html|pdf"
)
_ADDRESS = re.compile(
    rf"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\.[\w-]+)*\.(?:{_ENDINGS})(?:[/:?#]\S*)?",
    re.IGNORECASE,
)
_TAG = re.compile(r"[#@][^\W\d]\w*")
_PARTS = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Names of signs in addresses, the likeliest first.
_NAMES = {
    ".": ("dot",), "/": ("slash", "forward slash"), "@": ("at",), ":": ("colon",), "-": ("dash", "hyphen", ""),
    "_": ("underscore", ""), "?": ("question mark",), "=": ("equals",), "&": ("and", "ampersand"),
    "#": ("hash", "pound"), "+": ("plus",), "~": ("tilde",), "%": ("percent",),
}  # fmt: skip
_SPELLED = {"http": "h t t p", "https": "h t t p s", "www": "w w w"}


def address(core: str) -> list[str]:
    """List the readings of an address; none for other words."""
    if not _ADDRESS.fullmatch(core):
        return []
    bare = re.sub(r"^https?://", "", core, flags=re.IGNORECASE).rstrip("/")
    short = re.sub(r"^www\.", "", bare, flags=re.IGNORECASE)
    found = [way for part in dict.fromkeys((bare, short, core)) for way in _spelled(part)]
    return distinct(found)


def tag(core: str) -> list[str]:
    """List the readings of ``#Tag`` and ``@name``; none for other words."""
    if not _TAG.fullmatch(core):
        return []
    written = re.sub(
        r"\d+", lambda digits: f" {whole(digits[0])[0]} ", core[1:].replace("_", " "), flags=re.ASCII
    )
    words = " ".join(_HUMP.sub(" ", written).lower().split())
    names = ("hashtag", "", "hash") if core[0] == "#" else ("at", "")
    return distinct([f"{name} {words}".strip() for name in names]) if words else []


def _spelled(text: str) -> list[str]:
    """Read an address part by part: as words, by letter where a part is short, and with other names of its signs."""
    parts = [_reading(part) for part in _PARTS.findall(text)]
    found = [" ".join(part[0] for part in parts if part[0])]
    for i, part in enumerate(parts):
        found += [
            " ".join(p for p in [*(q[0] for q in parts[:i]), other, *(q[0] for q in parts[i + 1 :])] if p)
            for other in part[1:]
        ]
    return found


def _reading(part: str) -> tuple[str, ...]:
    lower = part.lower()
    if part.isdigit():
        return tuple(whole(part)[:3]) if part.isascii() else (part,)
    if not part.isalpha():
        return _NAMES.get(part, ("",))
    if lower in _SPELLED:
        return (_SPELLED[lower],)
    letters = " ".join(lower)
    if len(part) < 3 and lower not in (
        "at",
        "be",
        "by",
        "go",
        "in",
        "it",
        "me",
        "my",
        "no",
        "on",
        "to",
        "up",
        "us",
        "we",
    ):
        return (letters, lower)
    return (lower, letters) if len(part) < 5 and lower not in ("com", "net", "info") else (lower,)
