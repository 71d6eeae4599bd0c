"""The command ``doctor``: what isotone finds on this machine, and what to do about what is amiss."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from isotone.cli.console import out

_MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[bold red]problem[/]"}

#: Packages that every use needs, and those of one extra each.
_PACKAGES = ("torch", "torchaudio", "transformers", "numba", "numpy", "soundfile")
_EXTRAS = {"search": ("faiss", "an index of vectors for searches"), "numbers": ("num2words", "numbers beyond English"),
           "lm": ("flashlight", "n-gram language models")}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        what: What was looked at.
        state: ``ok``, ``note`` for something optional that is absent, or ``problem``.
        found: What was found.
        advice: What to do; empty where nothing is amiss.
    """

    what: str
    state: str
    found: str
    advice: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Report versions, device, threads, folders and a trial alignment, with advice where something is amiss.

    The exit code is 1 if there is a problem.

    Example: isotone doctor
    """
    found = []
    for check in CHECKS:
        for finding in _told(check):
            found.append(finding)
            if not as_json:
                _print(finding)
    if as_json:
        sys.stdout.write(json.dumps([asdict(f) for f in found], indent=2, ensure_ascii=False) + "\n")
    if any(finding.state == "problem" for finding in found):
        raise typer.Exit(1)


def _told(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Run a check; one that fails is a problem, not the end of the report."""
    try:
        yield from check()
    except Exception as error:
        what = check.__name__.strip("_")
        yield Finding(
            what, "problem", f"{type(error).__name__}: {error}", "Report this, with the whole table."
        )


def _print(finding: Finding) -> None:
    lines = [f"{_MARKS[finding.state]:<22} {escape(finding.what)}: {escape(finding.found)}"]
    lines += [f"        {escape(finding.advice)}"] if finding.advice else []
    out.print("\n".join(lines), highlight=False, soft_wrap=True)


def _versions() -> Iterator[Finding]:
    yield Finding("Python", "ok", f"{platform.python_version()}, {platform.platform()}")
    yield Finding("isotone", "ok", f"{version('isotone')}, {Path(__file__).parents[1]}")
    for name in _PACKAGES:
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding(name, "problem", "not installed", f"pip install {name}")
    torch, torchaudio = (version(name).split("+")[0] for name in ("torch", "torchaudio"))
    if torch.split(".")[:2] != torchaudio.split(".")[:2]:
        advice = f'pip install "torchaudio=={".".join(torch.split(".")[:2])}.*"'
        yield Finding(
            "torchaudio", "problem", f"{torchaudio} is built for another torch than {torch}", advice
        )


def _devices() -> Iterator[Finding]:
    import torch

    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(i)
            yield Finding(
                f"cuda:{i}", "ok", f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB (--device cuda:{i})"
            )
    elif torch.backends.mps.is_available():
        yield Finding("device", "ok", "Apple's GPU (--device mps), and the CPU")
    else:
        yield Finding("device", "ok", "the CPU")


def _threads() -> Iterator[Finding]:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    said = f"{torch.get_num_threads()} of torch on {cores} cores; other programs keep {load:.1f} busy"
    if load > cores / 2 and torch.get_num_threads() > 1:
        advice = "Threads wait for each other on busy cores: OMP_NUM_THREADS=1 is faster then."
        yield Finding("threads", "note", said, advice)
    else:
        yield Finding("threads", "ok", said)


def _kernels() -> Iterator[Finding]:
    from isotone.kernels.native import PLAIN, VARIABLE

    if PLAIN:
        advice = f"Plain kernels are slower. Unset {VARIABLE}, or install a numba of the range that isotone asks for."
        yield Finding("kernels", "note", "plain", advice)
    else:
        yield Finding("kernels", "ok", "native")


def _alignment() -> Iterator[Finding]:
    import numpy as np

    import isotone

    samples = np.random.default_rng(0).normal(0, 0.1, 32_000).astype(np.float32)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        isotone.align((samples, 16_000), "hello")
        seconds.append(time.perf_counter() - start)
    said = f"2 s of noise by the pack 'english': {seconds[0]:.1f} s with all loading, then {seconds[1]:.2f} s"
    slow = seconds[0] > 10
    advice = "The first alignment compiles kernels, once: the next start takes a few seconds." if slow else ""
    yield Finding("alignment", "note" if slow else "ok", said, advice)


def _pronunciation() -> Iterator[Finding]:
    from isotone.text.espeak_library import EspeakNotInstalled, Library

    try:
        Library()
    except EspeakNotInstalled:
        advice = 'Other languages than English need it: pip install "isotone[synth]"'
        yield Finding("espeak-ng", "note", "not installed", advice)
    else:
        yield Finding("espeak-ng", "ok", version("espeakng-loader"))


def _audio() -> Iterator[Finding]:
    from isotone.audio.decoding import decoder

    if found := decoder():
        yield Finding("m4a, mp4, webm", "ok", f"decoded by {found}")
    else:
        advice = "Install ffmpeg, or: pip install torchcodec"
        yield Finding("m4a, mp4, webm", "note", "no decoder", advice)


def _extras() -> Iterator[Finding]:
    for extra, (module, purpose) in _EXTRAS.items():
        if importlib.util.find_spec(module):
            yield Finding(f"[{extra}]", "ok", purpose)
        else:
            yield Finding(
                f"[{extra}]", "note", f"not installed: {purpose}", f'pip install "isotone[{extra}]"'
            )


def _folders() -> Iterator[Finding]:
    here = Path.cwd()
    if os.access(here, os.W_OK | os.X_OK):
        yield Finding("this folder", "ok", f"{here} can be written to")
    else:
        yield Finding(
            "this folder", "note", f"{here} cannot be written to", "Give commands another one by --out."
        )


#: The checks in order; the last ones take longest.
CHECKS = (_versions, _devices, _folders, _audio, _extras, _pronunciation, _kernels, _threads, _alignment)
