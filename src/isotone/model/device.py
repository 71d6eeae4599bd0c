"""Devices by their names."""

from __future__ import annotations


def check_device(device: str) -> None:
    """Raise ValueError for a device that cannot be used."""
    if device == "cpu":
        return
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"The device {device!r} cannot be used: {reason}") from error
