"""The benchmarks' harness, on contenders whose times, memory and results are known; and a smoke test of all."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
import torch
import typer
from scipy.signal import lfilter
from typer.testing import CliRunner

from benchmarks import harness, output, search_threshold, timing
from benchmarks.__main__ import app
from benchmarks.harness import Bench, Peer, Report, Row, Size
from benchmarks.memory import peak_extra_mib
from tests.paths import ROOT

CUDA = torch.cuda.is_available()

TOYS = """
import time
import numpy as np

def inputs(dims):
    return np.full(dims["n"], 7, np.uint8)

def result(given):
    return int(given[:10].sum())

def slow(given):
    time.sleep(0.004)
    return result(given)

def slower(given):
    time.sleep(0.02)
    return result(given)

def wrong(given):
    return -1

def broken(given):
    raise RuntimeError("no such luck")

def hungry(given):
    transient = np.ones(len(given), np.uint8)  # gone before the end
    del transient
    kept = np.ones(len(given) // 2, np.uint8)
    return kept

def thrifty(given):
    return np.zeros(1 << 30, np.uint8)[:1]  # a gigabyte that is never touched

def equal(given, ours, theirs):
    assert ours == theirs, f"{ours} is not {theirs}"
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Functions that a fresh process can import too."""
    (tmp_path / "benchmark_toys.py").write_text(TOYS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("benchmark_toys")
    del sys.modules["benchmark_toys"]


def bench(toys: ModuleType, *peers: Peer, targets: dict[str, float] | None = None) -> Bench:
    sizes = [Size({"n": 100}, targets or {}, quick=True)]
    return Bench("toy", "a toy", toys.inputs, toys.slow, peers, sizes, "n")


def measured(of: Bench) -> Report:
    report = Report()
    for _ in harness.measure(of, of.sizes, seconds=0.05, memory=False, threads=1, report=report):
        pass
    return report


def row(value: int, ours_ms: float, peer: str = "peer", peer_ms: float | None = None) -> Row:
    ratio = None if peer_ms is None else ours_ms / peer_ms
    return Row(
        bench="toy", size=f"n {value}", axis="n", axis_value=value, swept=True, ours_ms=ours_ms, peer=peer,
        peer_ms=peer_ms, ratio=ratio, target=None, held=None, same_result=True, ours_best_ms=ours_ms,
        peer_best_ms=peer_ms, ours_mib=None, peer_mib=None, memory_target_mib=None, memory_held=None, rounds=3,
    )  # fmt: skip


def test_a_ratio_is_ours_by_theirs_and_is_held_against_its_target(toys: ModuleType) -> None:
    peer = Peer("peer", toys.slower, toys.equal)
    for target, held in ((0.9, True), (0.01, False)):
        report = measured(bench(toys, peer, targets={"peer": target}))
        assert report.failures == []
        (only,) = report.rows
        assert only.ours_ms >= 4
        assert only.peer_ms is not None
        assert only.peer_ms >= 20
        assert only.ratio == only.ours_ms / only.peer_ms
        assert only.held is held
        assert only.same_result is True
        assert only.ours_best_ms <= only.ours_ms


def test_who_disagrees_or_breaks_is_a_failure_and_not_timed(toys: ModuleType) -> None:
    peers = [
        Peer("wrong", toys.wrong, toys.equal),
        Peer("broken", toys.broken, toys.equal),
        Peer("yardstick", toys.wrong, yardstick=True),
    ]
    report = measured(bench(toys, *peers))
    assert [only.peer for only in report.rows] == ["yardstick"]
    assert report.rows[0].same_result is False
    assert len(report.failures) == 2
    assert "wrong: AssertionError: 70 is not -1" in report.failures[0]
    assert "broken: RuntimeError: no such luck" in report.failures[1]


def test_ours_where_it_is_wrong_gives_no_rows(toys: ModuleType) -> None:
    def check(given: np.ndarray, result: int) -> None:
        assert result == 71, "not seventy-one"

    of = bench(toys, Peer("peer", toys.result, toys.equal))
    report = measured(Bench(of.name, of.about, of.inputs, of.ours, of.peers, of.sizes, of.axis, check))
    assert report.rows == []
    assert "isotone: AssertionError: not seventy-one" in report.failures[0]


def test_a_peer_that_is_not_installed_is_left_out(toys: ModuleType) -> None:
    absent = Peer("absent", toys.broken, toys.equal, package="no-such-package-here")
    report = measured(bench(toys, absent))
    assert not absent.installed
    assert report.failures == []
    (alone,) = report.rows  # ours, on its own
    assert (alone.peer, alone.ratio, alone.held) == ("", None, None)


def test_every_round_calls_everybody_once() -> None:
    calls: list[str] = []
    runs = {name: partial(calls.append, name) for name in "abc"}
    times = timing.interleaved(runs, seconds=60)
    rounds = [calls[at : at + 3] for at in range(0, len(calls), 3)]
    assert all(sorted(of_round) == ["a", "b", "c"] for of_round in rounds)
    assert len(set(map(tuple, rounds))) > 1  # not always in the same order
    assert len(rounds) >= 20
    assert {name: len(of_one) for name, of_one in times.items()} == dict.fromkeys("abc", len(rounds))


def test_long_calls_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 100))  # every reading is 100 s later
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(clock)))
    times = timing.interleaved({"slow": lambda: None}, seconds=1.0)
    assert times == {"slow": [100_000.0]}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system cannot reset the peak")
def test_memory_is_what_a_call_touches_at_its_peak(toys: ModuleType) -> None:
    dims = {"n": 48 << 20}
    for run, expected in ((toys.hungry, 48), (toys.thrifty, 0), (toys.result, 0)):
        extra = peak_extra_mib(toys.inputs, run, dims, 1)
        assert extra == pytest.approx(expected, abs=1), run.__name__


def test_the_exponent_of_a_power_is_found_in_the_larger_sizes() -> None:
    sizes = [100, 200, 400, 800, 1600, 3200]
    rows = [row(n, 5e-6 * n**2, "peer", 3e-3 * n**1.5) for n in sizes]
    rows[0] = row(100, 500.0, "peer", 900.0)  # a fixed cost bends the start of the curve
    slopes = output.exponents(rows)
    assert slopes["isotone"] == pytest.approx(2, abs=1e-6)
    assert slopes["peer"] == pytest.approx(1.5, abs=1e-6)
    assert output.exponents(rows[:2]) == {}


def test_what_is_written(tmp_path: Path, toys: ModuleType) -> None:
    of = Bench(
        "toy", "a toy", toys.inputs, toys.slow, [],
        [Size({"n": n, "m": n // 2, "d": 3}, swept=True) for n in (10, 20, 40)], "n",
    )  # fmt: skip
    rows = [row(n, n * 0.5, "peer", n * 2.0) for n in (10, 20, 40)]
    output.write_json(tmp_path / "rows.json", rows, {"cores": "2"})
    read = json.loads((tmp_path / "rows.json").read_text())
    needed = {"bench", "size", "ours_ms", "peer", "peer_ms", "ratio", "ours_mib", "peer_mib", "machine"}
    assert all(needed <= set(one) for one in read)
    assert [one["ratio"] for one in read] == [0.25] * 3
    assert [path.name for path in output.figure(of, of.sizes, rows, tmp_path)] == ["toy.png", "toy.svg"]
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "toy.svg").read_text()
    assert output.figure(of, of.sizes, [], tmp_path) == []


@pytest.mark.parametrize("module", harness.modules())
def test_declarations_fit_together(module: str) -> None:
    for of in harness.load(module):
        names = [peer.name for peer in of.peers]
        assert all(peer.yardstick or peer.agrees is not None for peer in of.peers)
        assert of.sizes or of.gpu_sizes
        for sizes in filter(None, (of.sizes, of.gpu_sizes)):
            assert sum(size.quick for size in sizes) >= 1
            assert all(of.axis in size.dims for size in sizes)
        assert len({tuple(size.dims) for size in (*of.sizes, *of.gpu_sizes)}) == 1
        assert sum(size.swept for size in of.sizes) >= 3 or not of.sizes
        for size in (*of.sizes, *of.gpu_sizes):
            assert set(size.targets) <= set(names if size.peers is None else size.peers)


@pytest.mark.filterwarnings("ignore")  # of the peers
@pytest.mark.parametrize("module", harness.modules())
def test_every_benchmark_runs_and_agrees_with_its_peers(module: str) -> None:
    for of in (one for one in harness.load(module) if one.sizes):
        report = Report()
        sizes = [size for size in of.sizes if size.quick]
        for _ in harness.measure(of, sizes, seconds=0, memory=False, threads=1, report=report):
            pass
        assert report.failures == []
        assert {row.bench for row in report.rows} == {of.name}
        assert all(row.ours_ms > 0 and row.ours_mib is None for row in report.rows)


ON_GPU = [of for module in harness.modules() for of in harness.load(module) if of.gpu_sizes]


@pytest.mark.parametrize("of", ON_GPU, ids=lambda of: of.name)
@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not CUDA, reason="needs a CUDA device")]
        ),
    ],
)
def test_what_runs_on_a_gpu(of: Bench, device: str, tmp_path: Path) -> None:
    """On the CPU the same code, and the peers that run there: nothing that is measured counts."""
    if of.name == "throughput-english" and not (ROOT / "plugins/isotone_english/model").is_dir():
        pytest.skip("the pack's weights are not built")
    report = Report()
    sizes = [size for size in of.gpu_sizes if size.quick]
    steps = harness.measure(
        of, sizes, seconds=0.01, memory=device == "cuda", threads=1, report=report, device=device
    )
    assert len(list(steps)) >= 2
    assert report.failures == []
    timed = {one.peer for one in report.rows if one.peer}
    assert timed == {peer.name for peer in of.peers if peer.installed and device in peer.devices}
    text = output.write_markdown(tmp_path / "table.md", report.rows, {"device": "a GPU"}, "no measurement")
    assert text.startswith("device: a GPU.")
    assert text.count(f"| {of.name}: ") == len(report.rows)
    assert "no measurement" in (tmp_path / "table.md").read_text()


def test_hours_of_audio_per_minute(tmp_path: Path) -> None:
    one = replace(row(10, 500.0, "peer", 1000.0), hours=0.5)
    text = output.write_markdown(tmp_path / "table.md", [one], {})
    assert "| 60.0 | 30.0 |" in text


@pytest.mark.skipif(CUDA, reason="there is a CUDA device")
def test_without_a_gpu_nothing_is_measured(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--device", "cuda", "--json", str(tmp_path / "rows.json")])
    assert done.exit_code == 0
    assert "There is no CUDA device here: nothing was measured." in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_result_may_time_itself() -> None:
    calls: list[int] = []

    def trained() -> Timed:
        calls.append(1)
        return Timed(7.0)

    assert timing.interleaved({"training": trained}, seconds=0.0) == {"training": [7.0]}
    assert len(calls) == 1


class Timed(NamedTuple):
    ms: Any


def test_inputs_move_with_their_structure() -> None:
    leaf = torch.ones(2, requires_grad=True)
    pair, number, text = timing.moved(((leaf * 2, leaf), 3, "a"), "meta")
    assert [x.device.type for x in pair] == ["meta", "meta"]
    assert all(x.is_leaf and x.requires_grad for x in pair)
    assert (number, text) == (3, "a")
    timed = timing.moved(Timed(leaf), "meta")
    assert isinstance(timed, Timed)


BLOCKS = """
from benchmarks import softdtw
from benchmarks.softdtw_blocks import soft_dtw

for n, m in ((20, 20), (33, 17), (5, 40)):
    pair = softdtw.walks({"B": 2, "n": n, "m": m, "d": 3})
    softdtw.check(pair, softdtw._with_gradient(soft_dtw(*pair, softdtw.GAMMA), pair))
print("the same")
"""


def test_the_peer_of_soft_dtw_computes_it() -> None:
    """Its kernels, run by Triton's interpreter, against the recursion by autograd."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS],
        cwd=ROOT, capture_output=True, text=True, timeout=300, env={**os.environ, "TRITON_INTERPRET": "1"},
    )  # fmt: skip
    assert done.stdout == "the same\n", done.stderr


def test_the_command_measures_memory_and_draws(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "coupling", "--json", tmp_path / "rows.json",
         "--figures", tmp_path],
        cwd=ROOT, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    kept = 3 * 8 * (10_000 + 1000) / 2**20  # source, target and mass
    assert all(kept - 0.1 <= one["ours_mib"] <= kept + 1 for one in rows)
    assert (tmp_path / "coupling.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["no-such-bench"], "coupling"),  # what there is
        (["coupling", "--sizes", "n=-4,m=3"], "at least 1"),
        (["coupling", "--sizes", "4"], "n=5000,m=400"),
        (["coupling", "--sizes", "T=4"], "--list"),
    ],
)
def test_the_command_says_what_it_cannot_do(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_the_list_names_peers_and_targets() -> None:
    done = CliRunner().invoke(app, ["coupling", "--list"])
    assert done.exit_code == 0
    assert "peers: POT emd_1d, torch sort" in done.stdout
    assert "n 1000000, m 100000: <= 0.5 POT emd_1d" in done.stdout


def test_search_thresholds_are_measured(tmp_path: Path) -> None:
    """Clips of a folder are found, clips of another are not; both are shares of the clips that were drawn."""
    rng = np.random.default_rng(0)
    for name in ("there", "other"):
        (tmp_path / name).mkdir()
        for number in range(6):
            # bursts of noise of one colour each, every third of a second
            parts = [lfilter([1.0], [1.0, -rng.uniform(-0.9, 0.9)], rng.normal(size=5000)) for _ in range(20)]
            soundfile.write(tmp_path / name / f"{number}.wav", 0.1 * np.concatenate(parts) / 4, 16_000)
    single = typer.Typer()
    single.command()(search_threshold.main)
    done = CliRunner().invoke(single, [str(tmp_path / "there"), str(tmp_path / "other"), "--count", "4"])
    assert done.exit_code == 0, done.output
    cells = {tuple(c.strip() for c in line.split("|")[1:3]): line.split("|")[3:-1] for line in done.output.splitlines()
             if line.startswith(("| there", "| other"))}  # fmt: skip
    assert len(cells) == 2 * len(search_threshold.CHANGES)
    assert float(cells["there", "as it is"][2]) == 100
    assert float(cells["other", "as it is"][2]) <= 25
