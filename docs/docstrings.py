"""An extension of griffe: the marks of docstrings, which are Sphinx's, as Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from griffe import Extension

#: Before a formula in code, which ``docs/hooks.py`` makes MathML.
MATH, DISPLAY = "math:", "display math:"
_BLOCK = re.compile(r"^( *)\.\. math::(?:[ \n]+)((?:.+|\n+\1 +\S.*)(?:\n\1 +.+)*)", re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([^`]+)`")


class Sphinx(Extension):
    """Formulas and names in docstrings."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change an object's docstring."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """The text with formulas as marked code, and names of objects as code."""
    text = _BLOCK.sub(lambda m: f"{m[1]}`{DISPLAY}{' '.join(textwrap.dedent(m[2]).split())}`", text)
    text = re.sub(r":math:`([^`]+)`", lambda m: f"`{MATH}{' '.join(m[1].split())}`", text)
    return _ROLE.sub(r"`\1`", text)
