"""Workers on the machines of a Ray cluster."""

from __future__ import annotations

import logging
from typing import Any

from isotone.batch.crew import Begin, Crew, Event, Finished, Lost, Ready, key_of, perform
from isotone.batch.work import Done, Job, explain

log = logging.getLogger(__name__)

#: Seconds without any worker after which it is said that the cluster is waited for.
PATIENCE_S = 60.0


class _Actor:
    """The work of a command, on another machine."""

    def __init__(self, begin: Begin) -> None:
        import torch

        torch.set_num_threads(1)
        self.work = begin()

    def key(self) -> str:
        return key_of(self.work)

    def perform(self, job: Job) -> Done:
        return perform(self.work, job)


class Cluster(Crew):
    """Workers that are actors of Ray, each with one core, or with one GPU where the model is on GPUs.

    The recordings, the transcripts and the folder of a model must be at the same paths on every machine.

    Args:
        begin: Makes the work; it is pickled.
        address: Address of the cluster, as ``ray.init`` takes it: ``auto``, ``ray://HOST:PORT`` ...
        gpu: Workers need a GPU each.

    Raises:
        ImportError: Ray is not installed.
        OSError: there is no such cluster.
    """

    def __init__(self, begin: Begin, address: str, *, gpu: bool = False) -> None:
        self._ray = ray = _ray()
        self._own = not ray.is_initialized()
        if self._own:
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise OSError(f"No cluster of Ray at {address!r}: {error}") from error
        self._begin = ray.put(begin)
        options = {"num_cpus": 1, "num_gpus": 1 if gpu else 0, "max_restarts": 0, "max_task_retries": 0}
        self._remote = ray.remote(**options)(_Actor)
        self._kind = "GPU" if gpu else "CPU"
        self._actors: dict[int, Any] = {}
        self._calls: dict[Any, tuple[int, type[Ready] | type[Finished]]] = {}
        self._hired = 0
        self._said = False

    @property
    def size(self) -> int:
        """The number of workers that the cluster has room for now, at least 1."""
        return max(1, int(self._ray.cluster_resources().get(self._kind, 0)))

    def hire(self) -> int:
        """See :meth:`Crew.hire`; where the cluster has no room it begins later."""
        number = self._hired
        actor = self._remote.remote(self._begin)
        self._actors[number] = actor
        self._calls[actor.key.remote()] = number, Ready
        self._hired += 1
        return number

    def give(self, worker: int, job: Job) -> None:
        """See :meth:`Crew.give`."""
        self._calls[self._actors[worker].perform.remote(job)] = worker, Finished

    def wait(self, seconds: float | None) -> list[Event]:
        """See :meth:`Crew.wait`."""
        calls = list(self._calls)
        ended: list[Any] = []
        if not self._said and seconds is None and all(kind is Ready for _, kind in self._calls.values()):
            ended, _ = self._ray.wait(calls, timeout=PATIENCE_S)
            if not ended:
                self._said = True
                log.warning("Waiting for a free %s of the cluster.", self._kind)
        if not ended:
            ended, _ = self._ray.wait(calls, timeout=seconds)
        if ended:
            ended, _ = self._ray.wait(calls, num_returns=len(calls), timeout=0)
        return [self._told(call) for call in ended]

    def _told(self, call: Any) -> Event:
        worker, kind = self._calls.pop(call)
        try:
            return kind(worker, self._ray.get(call))
        except self._ray.exceptions.RayError as error:
            self._ray.kill(self._actors.pop(worker))  # it may only be out of reach
            return Lost(worker, _reason(error))

    def close(self) -> None:
        """See :meth:`Crew.close`."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._calls.clear()
        if self._own:
            self._ray.shutdown()


def _reason(error: Exception) -> str:
    """Describe the end of an actor in a line: the error of its work, or the first line of Ray's."""
    cause = getattr(error, "cause", None)
    lines = str(error).splitlines()
    return explain(cause) if isinstance(cause, Exception) else (lines[0] if lines else type(error).__name__)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError("--cluster needs Ray: pip install 'isotone[cluster]'.") from error
    return ray
