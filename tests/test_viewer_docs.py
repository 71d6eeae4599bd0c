"""docs/viewer.md: its keys are those of the page. Its command lines run in test_doc_commands."""

from __future__ import annotations

import re

from tests.paths import ROOT

TEXT = (ROOT / "docs/viewer.md").read_text()


def test_the_keys_are_those_of_the_page() -> None:
    """Every key of the table is one that the script knows."""
    script = (ROOT / "src/isotone/report/templates/viewer_viewer.js").read_text()
    for key in ("Tab", "PageUp", "PageDown", "Home", "End", "Escape"):
        assert f"{key}:" in script
    (row,) = re.findall(r"^\| (i, o, a, n, b) \|", TEXT, re.MULTILINE)
    for key in row.split(", "):
        assert f"{key}: () => this.command(" in script
