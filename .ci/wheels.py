"""Builds isotone and isotone-light as a user gets them, and tries each in a fresh environment: ``make wheels``.

Every wheel is installed with its dependencies for every given Python. There its version is asked for, ``isotone
doctor`` looks for problems, and the English model aligns one recording, which espeak-ng speaks here.

    python .ci/wheels.py dist --python python3.11 --python python3.13
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import soundfile

ROOT = Path(__file__).resolve().parents[1]
TEXT = "She washed the dog, and the dog was happy."
#: Arguments that align a recording, by the name of the wheel and of its program.
ALIGN = {"isotone": ["align"], "isotone-light": []}


def run(*command: str | Path, folder: Path = ROOT, path: str = "") -> str:
    """Run a command away from this environment's variables, but for a path of modules; return its standard output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": path} if path else {}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def build(out: Path) -> dict[str, Path]:
    """Build isotone's source distribution, its wheel from that, and isotone-light's wheel."""
    run(sys.executable, "-m", "build", "--outdir", out, ROOT)
    run(
        sys.executable,
        "-m",
        "light.build",
        out,
        path=os.pathsep.join(str(ROOT / top) for top in ("src", "plugins")),
    )
    wheels = {name: sorted(out.glob(f"{name.replace('-', '_')}-*.whl")) for name in ALIGN}
    for name, found in wheels.items():
        if len(found) != 1:
            raise SystemExit(f"{out} has {len(found)} wheels of {name}: give an empty folder.")
        print(f"{found[0].name}: {found[0].stat().st_size / 1e6:.1f} MB")
    return {name: found[0] for name, found in wheels.items()}


def speak(folder: Path) -> Path:
    """Write the recording and its text."""
    from isotone.text.espeak import SAMPLE_RATE, Engine

    soundfile.write(folder / "talk.wav", Engine().say(TEXT).samples, SAMPLE_RATE)
    (folder / "talk.txt").write_text(TEXT, encoding="utf-8")
    return folder / "talk.wav"


def attempt(name: str, wheel: Path, python: str, recording: Path) -> list[str]:
    """Install a wheel for a Python, use it, and return a row of the table.

    Raises:
        SystemExit: something is not as it should be.
    """
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        run(python, "-m", "venv", folder / "venv")
        programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        start = time.perf_counter()
        run(programs / "python", "-m", "pip", "install", "--quiet", wheel)
        installed = time.perf_counter() - start
        version = run(programs / "python", "-c", "import platform; print(platform.python_version())").strip()
        expected = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        said = run(programs / name, "--version", folder=folder).strip()
        check(said == f"{name} {expected}", f"--version says {said!r}")
        if name == "isotone":
            found = json.loads(run(programs / name, "doctor", "--json", folder=folder))
            check({row["state"] for row in found} <= {"ok", "note"}, f"doctor finds {found}")
        start = time.perf_counter()
        given = [recording, recording.with_suffix(".txt"), "--out", folder / "out", "--format", "json"]
        run(programs / name, *ALIGN[name], *given, folder=folder)
        seconds = time.perf_counter() - start
        check_words(
            json.loads((folder / "out/talk.json").read_text(encoding="utf-8")),
            soundfile.info(recording).duration,
        )
    return [wheel.name, version, f"{installed:.0f}", f"{seconds:.1f}"]


def check_words(found: dict, duration: float) -> None:
    """Check that the words are those of the text, in order and inside of the recording."""
    tiers = {tier["name"]: tier["segments"] for tier in found["tiers"]}
    words = [segment for segment in tiers["words"] if segment["label"]]
    check(
        [word["text"] for word in words] == TEXT.split(), f"the words are {[word['text'] for word in words]}"
    )
    times = [time for word in words for time in (word["start"], word["end"])]
    check(times == sorted(times) and times[0] >= 0 and times[-1] <= duration, f"the times are {times}")


def check(true: bool, problem: str) -> None:
    """End with a problem unless something is true."""
    if not true:
        raise SystemExit(problem)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, try, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of what is built")
    parser.add_argument("--python", action="append", help="Python to try the wheels with; repeat for several")
    parser.add_argument("--only", choices=sorted(ALIGN), help="the one wheel that is tried")
    options = parser.parse_args(arguments)
    wheels = build(options.out.resolve())
    rows = []
    with tempfile.TemporaryDirectory() as base:
        recording = speak(Path(base))
        for python in options.python or [sys.executable]:
            for name, wheel in wheels.items():
                if options.only in (None, name):
                    rows.append(attempt(name, wheel, python, recording))
                    print(f"{name} works with Python {rows[-1][1]}", flush=True)
    print("| wheel | Python | installation s | first alignment, with compiling s |\n|---|---|---|---|")
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    main()
