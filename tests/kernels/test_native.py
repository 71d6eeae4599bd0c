"""Plain kernels in place of native ones: when they run, what they give, and which compiled code they read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numba import njit

from isotone.kernels.native import PLAIN, VARIABLE, popcount
from isotone.kernels.native.mode import TESTED, prefers_plain
from isotone.kernels.posteriors import token_posteriors
from isotone.kernels.softdtw import soft_dtw

ROOT = Path(__file__).parents[2]
# Sums of a few hundred terms: native code may fuse a product and a sum.
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
# Quick to compile: the native code by itself. The large loops over it are in `results`.
SOME = ("test_arithmetic", "test_lanes", "test_hamming", "test_threads")


def python(*arguments: str, plain: bool, cache: Path | None = None) -> str:
    environment = {**os.environ, VARIABLE: "1" if plain else "0", "NUMBA_CACHE_DIR": str(cache or "")}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, check=False, env=environment, cwd=ROOT, timeout=1700,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def unindented(code: str) -> str:
    return "\n".join(line.strip() for line in code.splitlines())


@pytest.mark.parametrize(
    ("setting", "version", "plain"),
    [
        ("", "0.61.0", False),
        ("0", "0.68.1", False),
        ("no", "0.62.0rc1", False),
        ("1", "0.68.1", True),
        ("yes", "0.61.0", True),
        ("", "0.60.9", True),
        ("", "0.69.0", True),
        ("", "1.0.0", True),
    ],
)
def test_kernels_are_plain_on_request_or_with_another_numba(setting: str, version: str, plain: bool) -> None:
    assert prefers_plain(setting, version) == plain


def test_the_requirement_is_what_has_been_tested() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    first, last = (".".join(map(str, version)) for version in TESTED)
    assert f"numba>={first},<{last}" in about["project"]["dependencies"]


@njit
def _ones(words: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(words)):
        out[i] = popcount(words[i])


def test_ones_are_counted() -> None:
    words = np.random.default_rng(0).integers(0, 1 << 64, 1000, np.uint64)
    words[:2] = 0, ~np.uint64(0)
    out = np.zeros(1000, np.int64)
    _ones(words, out)
    assert (out == np.bitwise_count(words)).all()


def results() -> dict[str, Any]:
    """Numbers of the kernels that have native code beneath large loops, as lists."""
    rng = torch.Generator().manual_seed(0)
    log_probs = (2 * torch.randn(3, 90, 7, generator=rng, dtype=torch.float64)).log_softmax(-1)
    labels = torch.randint(1, 7, (3, 20), generator=rng)
    frames, tokens = torch.tensor([90, 88, 50]), torch.tensor([20, 15, 20])
    optional = torch.rand(3, 20, generator=rng) < 0.3
    place = torch.arange(90)
    paths = torch.where(place < frames[:, None], place * tokens[:, None] // frames[:, None], -1)
    out: dict[str, Any] = {}
    out["posteriors"] = token_posteriors(log_probs, paths, labels, frames, tokens, 0, optional=optional)
    cost = torch.rand(3, 17, 23, generator=rng, dtype=torch.float64).requires_grad_()
    value = soft_dtw(cost, 0.2, band=6)
    (visits,) = torch.autograd.grad(value.sum(), cost, create_graph=True)
    out["soft-dtw"] = value, visits, *torch.autograd.grad((visits * cost.detach()).sum(), cost)
    return {name: [x.detach().nan_to_num(-1.0).tolist() for x in values] for name, values in out.items()}


def test_results_agree() -> None:
    code = """
        import json
        from isotone.kernels.native import openmp
        from tests.kernels.test_native import PLAIN, results
        print(json.dumps([PLAIN, openmp.parallel() is None, results()]))
    """
    other, python_threads, theirs = json.loads(
        python("-c", unindented(code), plain=not PLAIN).splitlines()[-1]
    )
    assert other != PLAIN
    assert python_threads or not other
    for name, values in results().items():
        for own, their in zip(values, theirs[name], strict=True):
            np.testing.assert_allclose(own, their, **CLOSE, err_msg=name)


def test_neither_kind_reads_what_the_other_compiled(tmp_path: Path) -> None:
    code = """
        import numpy as np
        from isotone.kernels._hamming import distance_rows
        out = np.zeros((1, 9), np.uint16)
        distance_rows(0, np.ones((1, 1), np.uint64), np.arange(9, dtype=np.uint64)[None], out)
        assert out.tolist() == [[1, 0, 2, 1, 2, 1, 3, 2, 2]]
        stats = distance_rows.stats
        print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
    """

    def counts(plain: bool) -> str:
        return python("-c", unindented(code), plain=plain, cache=tmp_path).strip()

    assert counts(plain=False) == "0 1"
    assert counts(plain=True) == "0 1"
    assert counts(plain=False) == counts(plain=True) == "1 0"


def _suite(*files: str) -> None:
    python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        "--ignore",
        "tests/kernels/test_native.py",
        *files,
        plain=True,
    )


def test_the_operations_pass_their_tests_with_plain_kernels() -> None:
    _suite("tests/search/test_scan.py", *(f"tests/kernels/{name}.py" for name in SOME))


@pytest.mark.slow
@pytest.mark.timeout(1800)  # all loops are compiled anew, on machines that may be busy
def test_all_kernel_tests_pass_with_plain_kernels() -> None:
    others = "--ignore=tests/kernels/test_softdtw_triton.py", "--ignore=tests/kernels/test_numba_cache.py"
    _suite(*others, "tests/kernels", "tests/plugins/opas/test_kernels.py", "tests/search/test_scan.py")
