"""The command ``doctor``: what isotone finds on this machine, and what to do about what is amiss."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer
from packaging.requirements import Requirement
from rich.markup import escape

from isotone.cli.console import AsJson, out, print_json, say

_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}

#: Packages whose versions reports of errors need; the others are shown where something is amiss.
_PACKAGES = ("torch", "torchaudio", "transformers", "onnxruntime", "numba", "numpy", "soundfile")
_ROOM_GIB = 1.0
#: Packages of the extras.
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
    as_json: AsJson = False,
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
        print_json([asdict(finding) for finding in found])
    problems, notes = (sum(f.state == state for f in found) for state in ("problem", "note"))
    if not as_json:
        say(f"Problems: {problems or 'none'}. Notes: {notes or 'none'}.")
    if problems:
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
    mark = f"[{_STYLES[finding.state]}]{finding.state:<8}[/]"
    lines = [f"{mark} {escape(finding.what)}: {escape(finding.found)}"]
    lines += [f"{'':<8} {escape(finding.advice)}"] if finding.advice else []
    out.print("\n".join(lines), highlight=False, soft_wrap=True)


def _versions() -> Iterator[Finding]:
    yield Finding("Python", "ok", f"{platform.python_version()}, {platform.platform()}")
    yield Finding("isotone", "ok", f"{version('isotone')}, {Path(__file__).parents[1]}")
    for requirement in map(Requirement, requires("isotone") or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield from _package(requirement)
    torch, torchaudio = (version(name).split("+")[0] for name in ("torch", "torchaudio"))
    if torch.split(".")[:2] != torchaudio.split(".")[:2]:
        advice = f'pip install "torchaudio=={".".join(torch.split(".")[:2])}.*"'
        yield Finding(
            "torchaudio", "problem", f"{torchaudio} is built for another torch than {torch}", advice
        )


def _package(requirement: Requirement) -> Iterator[Finding]:
    """Compare a package with the range that isotone asks for."""
    name, advice = requirement.name, f'pip install "{requirement.name}{requirement.specifier}"'
    try:
        found = version(name)
    except PackageNotFoundError:
        yield Finding(name, "problem", "not installed", advice)
        return
    if not requirement.specifier.contains(found, prereleases=True):
        yield Finding(name, "problem", f"{found} is not in the range {requirement.specifier}", advice)
    elif name in _PACKAGES:
        yield Finding(name, "ok", found)


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
    elif shutil.which("nvidia-smi"):
        advice = "Install a torch that is built for the driver of this machine: https://pytorch.org/get-started/locally"
        yield Finding("device", "note", "the CPU; there is a GPU, but torch cannot use it", advice)
    else:
        yield Finding("device", "ok", "the CPU")


def _threads() -> Iterator[Finding]:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    said = f"{torch.get_num_threads()} of torch on {cores} cores; other programs keep {load:.1f} busy"
    if load > cores / 2 and torch.get_num_threads() > 1:
        advice = "Threads gain little on busy cores: OMP_NUM_THREADS=1 may be as fast."
        yield Finding("threads", "note", said, advice)
    else:
        yield Finding("threads", "ok", said)


def _kernels() -> Iterator[Finding]:
    from isotone.kernels.native import PLAIN, VARIABLE
    from isotone.kernels.numba_cache import VARIABLE as FOLDER

    if PLAIN:
        advice = f"Plain kernels are slower. Unset {VARIABLE}, or install a numba of the range that isotone asks for."
        yield Finding("kernels", "note", "plain", advice)
    else:
        yield Finding("kernels", "ok", "native")
    place = os.environ.get(FOLDER)  # isotone sets it where numba would find no folder
    if place and Path(place).resolve().is_relative_to(Path(tempfile.gettempdir()).resolve()):
        advice = f"Set {FOLDER} to a folder that stays and can be written to: a restart loses this one."
        yield Finding("compiled kernels", "note", f"kept in {place}, among temporary files", advice)


def _engine() -> Iterator[Finding]:
    from isotone.model.engine import engine_for

    engine = engine_for("english")
    if engine.reason:
        advice = (
            f"Alignment starts more quickly by onnxruntime. {engine.reason[:1].upper()}{engine.reason[1:]}."
        )
        yield Finding("engine of alignment", "note", "torch", advice)
    else:
        yield Finding("engine of alignment", "ok", "onnxruntime")


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
    places = (
        ("this folder", Path.cwd(), "Give commands another one by --out."),
        (
            "temporary files",
            Path(tempfile.gettempdir()),
            "Set TMPDIR to a folder with room that you can write to.",
        ),
    )
    for what, folder, advice in places:
        if reason := _unwritable(folder):
            yield Finding(what, "problem", f"{folder} cannot be written to: {reason}", advice)
        elif (free := shutil.disk_usage(folder).free / 2**30) < _ROOM_GIB:
            yield Finding(what, "note", f"{folder} has {free:.2f} GiB left", advice)
        else:
            yield Finding(what, "ok", f"{folder} can be written to, {free:.0f} GiB free")


def _unwritable(folder: Path) -> str:
    """Try to write to a folder; return why it cannot be done, or nothing."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"isotone")
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


#: The checks in order; the last ones take longest.
CHECKS = (
    _versions,
    _devices,
    _folders,
    _audio,
    _extras,
    _pronunciation,
    _kernels,
    _threads,
    _engine,
    _alignment,
)
