"""Scripts in processes of their own, without what starting one anew costs: forks of a server that has the imports.

A test that is of a fresh interpreter starts one. All others, which need a process that can be killed or two at once,
are here: a fork begins within a hundredth of the seconds that importing torch and transformers takes.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

_IMPORTED = [
    "isotone.batch.adapting", "isotone.training.run", "soundfile",
    "transformers.models.wav2vec2_bert.modeling_wav2vec2_bert", "transformers.trainer_pt_utils",
]  # fmt: skip


class Script:
    """Python code that runs in another process from the moment this object is made, on one thread.

    Args:
        code: As for ``python -c``.
        arguments: ``sys.argv`` from 1.
        variables: Of the environment, beside those of this process.
    """

    def __init__(self, code: str, *arguments: object, variables: Mapping[str, str] | None = None) -> None:
        self._words = Path(tempfile.mkdtemp(prefix="isotone-script-"))
        weakref.finalize(self, shutil.rmtree, self._words)
        for number in "12":
            (self._words / number).touch()
        context = get_context("forkserver")
        context.set_forkserver_preload(_IMPORTED)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
        self._process = context.Process(
            target=_run, args=(code, list(map(str, arguments)), environment, self._words)
        )
        self._process.start()

    @property
    def code(self) -> int | None:
        """Exit code; minus a signal's number where one ended it, and None while it runs."""
        return self._process.exitcode

    @property
    def stdout(self) -> str:
        """All that was written so far."""
        return (self._words / "1").read_text()

    @property
    def stderr(self) -> str:
        """All that was written so far, tracebacks among it."""
        return (self._words / "2").read_text()

    def wait_for(self, word: str) -> None:
        """Wait until the script has printed a word."""
        while word not in self.stdout:
            assert self.code is None, self.stderr
            time.sleep(0.001)

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def wait(self, seconds: float = 240) -> int:
        """Wait for the end, for so many seconds at most, after which it is killed; return the exit code."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        assert self.code is not None
        return self.code


def ranks(count: int) -> list[dict[str, str]]:
    """Variables of processes that share a training, as ``torchrun`` sets them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "true"}
    sizes = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    return [{**common, **sizes, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]


def _run(code: str, arguments: list[str], environment: dict[str, str], words: Path) -> None:
    import torch

    os.environ.clear()
    os.environ.update(environment)
    for number in (1, 2):
        os.dup2(os.open(words / str(number), os.O_WRONLY | os.O_APPEND), number)
    sys.argv = ["-c", *arguments]
    torch.set_num_threads(1)
    exec(code, {"__name__": "__main__"})
