"""Options that the commands on recordings share: the model and its use, and the output folder."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotone.files import check_folder, digest_of
from isotone.model.device import check_device
from isotone.model.engine import Engine, engine_for
from isotone.model.fetch import check_source
from isotone.pipeline.channels import WAYS
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.passages import SLACK_S
from isotone.pipeline.windows import Windows
from isotone.registries import aligners, decoders, formats
from isotone.text.options import TextOptions

if TYPE_CHECKING:
    from isotone.model import Model
    from isotone.pipeline import Pipeline

log = logging.getLogger(__name__)

#: The name of a plugin, or a mapping of its name and options.
Part = str | dict[str, Any]


@dataclass(frozen=True)
class Options:
    """A model and its use.

    Attributes:
        model: Model or run folder, or a hub id.
        aligner, decoder, times, guided, edges, extra_speech, star_cost: See :class:`isotone.pipeline.Pipeline`.
        device: Device of the model.
        engine: One of :data:`isotone.model.engine.ENGINES`, which aligns.
        window_s: Seconds of the windows into which long audio is cut; 0: none. See
            :class:`isotone.pipeline.windows.Windows`.
        text: Options of given texts.
        closures, presence, margins: See :class:`isotone.pipeline.Pipeline`.
        slack_s: Seconds by which the times of a transcript's passages may be wrong, see
            :func:`isotone.pipeline.passages.align_passages`.
        channels: One of :data:`isotone.pipeline.channels.WAYS`. ``auto``: each speaker of a transcript with times is
            aligned on a channel of their own where the levels tell clearly whose it is. ``order``: the first speakers
            are on the first channel, and so on. ``mix``: the mean of the channels.
        tiers: The tiers of transcripts that hold speech, see :func:`isotone.transcripts.open_source`.
    """

    model: str
    aligner: Part | None = None
    decoder: Part | None = None
    times: str | None = None
    device: str = "cpu"
    engine: str = "auto"
    window_s: float = Windows.window_s
    guided: bool = True
    edges: bool = True
    extra_speech: bool = False
    star_cost: float | None = None
    text: TextOptions = field(default_factory=TextOptions)
    closures: bool = False
    presence: bool = True
    slack_s: float = SLACK_S
    channels: str = "auto"
    margins: bool = False
    tiers: tuple[str, ...] = ()

    def check(self) -> None:
        """Check the options before a model is loaded.

        Raises:
            ValueError: a device that cannot be used, or an option out of range.
            OSError: there is no such model.
            LookupError: there is no such aligner or decoder.
        """
        for registry, part in ((aligners, self.aligner), (decoders, self.decoder)):
            if part is not None:
                registry.create(part)
        Windows(self.window_s)
        if not 0 <= self.slack_s < math.inf:
            raise ValueError(f"--slack expects seconds of 0 or more; got {self.slack_s}.")
        if self.channels not in WAYS:
            raise ValueError(f"--channels is {', '.join(WAYS[:-1])} or {WAYS[-1]}; got {self.channels!r}.")
        check_device(self.device)
        check_source(self.model)
        self.chosen_engine()

    def chosen_engine(self) -> Engine:
        """Choose the engine that aligns."""
        return engine_for(self.model, self.engine, device=self.device, aligner=self.aligner)

    def load_aligner(self) -> Any:
        """Load the model by the engine that aligns: a ``Model`` or an ``OnnxModel``."""
        engine = self.chosen_engine()
        log.info("Engine: %s%s", engine.name, f" ({engine.reason})" if engine.reason else "")
        return engine.load(self.model, self.text.language or "")

    def aligning(self, model: Any = None) -> ForcedPipeline:
        """Make the pipeline that aligns, of a model that :meth:`load_aligner` gave before, or load it."""
        return ForcedPipeline(model or self.load_aligner(), **self._uses())

    def load(self) -> Model:
        """Load the model, by torch."""
        from isotone.model import Model

        return Model.load(self.model, self.text.language or "")

    def pipeline(self, model: Model | None = None) -> Pipeline:
        """Make the pipeline that recognises and aligns, of a model that :meth:`load` gave before, or load it."""
        from isotone.pipeline import Pipeline

        return Pipeline(model or self.load(), decoder=self.decoder, **self._uses())

    def _uses(self) -> dict[str, Any]:
        """Return the options of pipelines."""
        names = ("aligner", "times", "device", "extra_speech", "star_cost", "guided", "edges", "text", "closures",
                 "presence", "margins")  # fmt: skip
        return {"windows": Windows(self.window_s), **{name: getattr(self, name) for name in names}}

    def values(self) -> dict[str, Any]:
        """Return plain values of the options that results depend on, without the model; files as digests.

        Device and engine are not among them. They may change the last digits of a number, which is no reason to repeat
        what is done.
        """
        without = ("model", "device", "engine")
        values = {name: value for name, value in asdict(self).items() if name not in without}
        for part in ("aligner", "decoder"):
            values[part] = _digested(values[part])
        values["text"]["dictionaries"] = [digest_of(path) for path in self.text.dictionaries]
        values["text"]["rules"] = [digest_of(path) for path in self.text.rules]
        values["text"]["numbers"] = _version("num2words")
        return values


def _digested(part: Any) -> Any:
    """Replace names of files among a plugin's options, such as a language model, by digests."""
    if not isinstance(part, Mapping):
        return part
    files = {
        k for k, value in part.items() if k != "name" and isinstance(value, str) and Path(value).is_file()
    }
    return {k: digest_of(Path(value)) if k in files else value for k, value in part.items()}


def _version(distribution: str) -> str:
    """Return the version of an optional library; empty if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class Target:
    """The output folder of a command.

    Attributes:
        out: The folder.
        formats: Names of the file formats, or mappings of their names and options.
        overwrite: Replace files that isotone did not write, or that were changed since.
        redo: Redo recordings whose files are up to date.
        prune: Remove the files of recordings that are no longer in the given folders.
        analysis: Write the tables of :mod:`isotone.batch.analysis`.
        speaker_characters: See :func:`isotone.batch.analysis.tables`; with more than 0 they are written.
        page: Write a page to look at and to listen to for every recording, and their index.
        keep_edited: Keep files that were changed since isotone wrote them, and do all others.

    Raises:
        ValueError: edited files are to be both kept and replaced.
    """

    out: Path
    formats: tuple[Part, ...] = ("textgrid",)
    overwrite: bool = False
    redo: bool = False
    prune: bool = False
    analysis: bool = False
    speaker_characters: int = 0
    page: bool = False
    keep_edited: bool = False

    def __post_init__(self) -> None:
        if self.overwrite and self.keep_edited:
            raise ValueError(
                "--keep-edited keeps what was changed, and --overwrite replaces it: say one of them."
            )

    @property
    def tables(self) -> bool:
        """True where tables are written."""
        return self.analysis or self.speaker_characters > 0

    def check(self) -> None:
        """Check that the folder is writable and the formats exist.

        Raises:
            OSError: ``out`` is no folder and cannot become one, or is not writable.
            LookupError: there is no such format.
            OptionError: a format has no such option.
        """
        for spec in self.formats:
            formats.create(spec)
        check_folder(self.out)


@dataclass(frozen=True)
class Workers:
    """The workers of a command.

    Attributes:
        jobs: Number of workers; 0: one process, or as many as a cluster has room for.
        cluster: Address of a Ray cluster, see :class:`isotone.batch.cluster.Cluster`; empty: processes of this machine.
        gpu: The model is on a GPU.
    """

    jobs: int = 0
    cluster: str = ""
    gpu: bool = False

    def check(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: fewer than 0 workers, or several on one GPU.
        """
        if self.jobs < 0:
            raise ValueError(f"--jobs is a number of processes, 1 or more; got {self.jobs}.")
        if self.gpu and self.jobs > 1 and not self.cluster:
            raise ValueError(
                f"--jobs {self.jobs} would put {self.jobs} copies of the model on one device: leave it out, or take "
                "--device cpu."
            )
