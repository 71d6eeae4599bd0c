"""Where the repository lies, and the recordings that some tests use where they are there."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "recipes"
#: Real recordings; tests that need them are skipped where they are absent.
DATA = Path(os.environ.get("ISOTONE_TEST_DATA", ROOT.parent / "shared" / "data"))
