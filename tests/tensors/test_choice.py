"""The choice of the library of tensors: torch, or numpy under its names."""

from __future__ import annotations

import subprocess
import sys
from threading import Thread

import pytest
import torch as real

from isotone.tensors import arrays, chosen, no_grad, torch, without_torch
from isotone.types import Targets


def test_numpy_is_chosen_inside_and_torch_elsewhere() -> None:
    assert isinstance(torch.zeros(2), real.Tensor)
    with without_torch():
        assert isinstance(torch.zeros(2), arrays.Tensor)
        with without_torch():
            pass
        assert chosen() is arrays
    assert chosen() is real
    with pytest.raises(KeyError), without_torch():
        raise KeyError
    assert chosen() is real


def test_another_thread_has_torch() -> None:
    found = []
    with without_torch():
        thread = Thread(target=lambda: found.append(chosen()))
        thread.start()
        thread.join()
    assert found == [real]


def test_gradients_are_off_inside_the_decorator() -> None:
    @no_grad
    def gradients() -> bool:
        return real.is_grad_enabled()

    assert not gradients()
    assert real.is_grad_enabled()


def test_types_hold_either() -> None:
    with without_torch():
        assert isinstance(Targets.from_lists([[1, 2], [3]]).labels, arrays.Tensor)
    assert isinstance(Targets.from_lists([[1, 2], [3]]).labels, real.Tensor)


def test_types_and_aligners_do_not_import_torch() -> None:
    code = """
import sys, isotone.types, isotone.pipeline.forced, isotone.batch.commands, isotone_ctc.align, isotone_ottc.align
from isotone.tensors import torch, without_torch
with without_torch():
    torch.zeros(1)
print("torch" in sys.modules)
torch.zeros(1)
print("torch" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]
