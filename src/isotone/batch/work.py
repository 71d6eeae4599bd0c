"""The work of a command on one recording, and errors in one line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from isotone import audio as sound
from isotone.audio import Samples
from isotone.batch.inputs import readable

if TYPE_CHECKING:
    from isotone.batch.ledger import Entry


@dataclass(frozen=True)
class Report:
    """A report on all recordings of an output folder.

    Attributes:
        contents: Contents of its files, by their names.
        lines: Its summary, for people.
    """

    contents: Mapping[str, bytes] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


#: Tells if a file is a result of the same command, which nobody changed since.
Own = Callable[[Path], bool]


@dataclass(frozen=True)
class Inputs:
    """The files besides the recording that a result depends on.

    Attributes:
        files: The files by their roles.
        notes: Warnings about their choice, for people.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A recording for a worker.

    Attributes:
        id: Its name, which no other job has.
        path: The recording.
        formats: Formats to write.
        inputs: Its inputs. A worker does not look for them again: meanwhile results may lie beside them.
    """

    id: str
    path: Path
    formats: tuple[str, ...]
    inputs: Inputs = field(default_factory=Inputs)


@dataclass(frozen=True)
class Done:
    """The result of a command's work on one recording.

    Attributes:
        contents: Contents of the files to write, by the name of their format.
        warnings: Warnings for people.
        score, agreement: Fit of the text, see :class:`isotone.pipeline.result.Result`.
        text: The recognised text.
        analysis: Measures of the alignment, see :func:`isotone.batch.analysis.measured`; None where there are none.
        error: The reason why there are no contents; empty if there are.
        verdict: Verdict on the text, see :class:`isotone.alignment.Alignment`.
    """

    contents: Mapping[str, bytes]
    warnings: tuple[str, ...] = ()
    score: float | None = None
    agreement: float | None = None
    text: str = ""
    analysis: dict[str, Any] | None = None
    error: str = ""
    verdict: str = ""


class Work(ABC):
    """The work of a command on one recording, with the model that it needs.

    Attributes:
        command: Name on the command line.
        lists_texts: True where recognised texts are listed.
        reports: Names of the files of its report.
        sample_rate: Hz of the samples it takes.
        suffixes: Suffixes of the files it writes, by the name of their format.
        engine: Engine of its model (:mod:`isotone.model.engine`); empty where it has none.
        at_once: Recordings that :meth:`run_all` takes, at most.
    """

    command: ClassVar[str]
    lists_texts: ClassVar[bool] = False
    reports: ClassVar[tuple[str, ...]] = ()
    sample_rate: int
    suffixes: Mapping[str, str]
    engine: str = ""
    at_once: int = 1

    @abstractmethod
    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Find the files besides the recording that the result depends on.

        Args:
            recording: The recording.
            own: Tells of results of this command, which are none of its inputs.

        Raises:
            OSError: one of them is missing.
        """

    @abstractmethod
    def key(self, digests: Mapping[str, str]) -> str:
        """Return the key of a result: a digest of all that it depends on.

        Args:
            digests: Digests of the inputs by their roles; the recording's is ``audio``.
        """

    def load(self, recording: Path) -> Samples:
        """Read the samples of a recording, for :meth:`run`.

        Raises:
            AudioError: it has no usable audio.
        """
        return sound.load(recording, self.sample_rate)

    @abstractmethod
    def run(self, job: Job, samples: Any) -> Done:
        """Compute the contents of a recording's files, in the job's formats, from samples of :meth:`load`."""

    def run_all(self, jobs: Sequence[Job], samples: Sequence[Any]) -> list[Done | None]:
        """Do several recordings at once, where that takes less time than one by one, with the same results.

        Returns:
            What :meth:`run` returns of each, and None of those that are to be done by it.
        """
        return [None] * len(jobs)

    def report(self, entries: Sequence[Entry]) -> Report:
        """Report on all recordings of the output folder, from their entries with analysis."""
        return Report()

    def doubt(self, score: float | None, agreement: float | None) -> str:
        """Return the reason to doubt the text of a result; empty if there is none."""
        return ""

    def watch(self, on_part: Callable[[float], None]) -> None:
        """Report the share of a long recording that is done by calling ``on_part``, where the work can."""
        return


def explain(error: Exception, path: Path | str = "") -> str:
    """Describe an error, of a file, in one line."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    if not isinstance(error, (OSError, ValueError, LookupError, ImportError)):
        text = f"{type(error).__name__}: {text}"
    return readable(text.removeprefix(f"{path}: ") or type(error).__name__)
