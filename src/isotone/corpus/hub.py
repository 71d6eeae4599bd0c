"""Corpora of the Hugging Face hub, and local data sets in the files of the ``datasets`` library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from isotone.audio import info
from isotone.corpus.rows import CorpusError, Part, RowCorpus, recording_row
from isotone.files import atomic_write, safe_name

#: Columns of a data set by their meaning here; ``audio`` and ``text`` are required.
COLUMNS = {"audio": "audio", "text": "text", "id": "id", "speaker": "speaker_id"}

#: Suffixes of single files that are data sets, with the reader of ``datasets`` for each.
READERS = {".parquet": "parquet", ".arrow": "arrow"}

# Files per folder of the cache.
_FILES_PER_FOLDER = 1000


class HubCorpus(RowCorpus):
    """Any data set with audio and text, from the Hugging Face hub or from local files of the same formats.

    The data is read once, as a stream. Audio inside the data's own files (parquet, arrow) is copied unchanged into one
    file per utterance: training reads utterances in random order, and does not hold them in memory. The copy takes
    as much disk as the data set. Audio in separate files is not copied.

    Texts are not changed. Reading a data set again (without a manifest) does not copy it again.

    Args:
        source: An id on the hub (``openslr/librispeech_asr``); or a file ``.parquet`` or ``.arrow``, which is the split
            ``train``; or a folder of ``save_to_disk`` or of parquet files named after their splits. (For folders of
            plain recordings use :class:`isotone.corpus.folder.FolderCorpus`.)
        config: Name of the data set's configuration (``clean``), if it has several.
        columns: Names of its columns ``audio``, ``text``, ``id`` and ``speaker``, if they are not ``audio``, ``text``,
            ``id`` and ``speaker_id``. Without a column of ids, rows are numbered.
        revision: Commit or tag on the hub. Default: the current one, until a manifest is made.
        root: Folder for the copied audio; every source has its own folder in it.

    Raises:
        ValueError: unknown keys in ``columns``.
    """

    def __init__(
        self,
        source: str | Path,
        config: str | None = None,
        columns: Mapping[str, str] | None = None,
        revision: str | None = None,
        root: str | Path = "~/.cache/isotone/hub",
    ) -> None:
        if unknown := sorted(set(columns or {}) - set(COLUMNS)):
            raise ValueError(f"A data set's columns here are {', '.join(COLUMNS)}; got {unknown}.")
        key = hashlib.sha256(json.dumps([str(source), config, revision]).encode()).hexdigest()[:12]
        super().__init__(Path(root).expanduser() / f"{safe_name(Path(source).name)}-{key}")
        self.source = str(source)
        self.config = config
        self.columns = {**COLUMNS, **(columns or {})}
        self.revision = revision

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Iterate over the rows of a split, in their order.

        Raises:
            FileNotFoundError: no such file or folder, or no such data set on the hub.
            ValueError: no such split or column.
        """
        from datasets import Audio

        rows = self._open(split)
        there = list(rows.features or next(iter(rows), {}))
        for kind in ("audio", "text"):
            if self.columns[kind] not in there:
                raise ValueError(
                    f"{self.source} has no column {self.columns[kind]!r} for its {kind}; it has {', '.join(there)}. "
                    f"Say which it is with columns: {{{kind}: NAME}}."
                )
        kept = [name for name in self.columns.values() if name in there]
        rows = rows.select_columns(kept).cast_column(self.columns["audio"], Audio(decode=False))
        folder = self.root / safe_name(split)
        for number, row in enumerate(rows):
            id = str(row.get(self.columns["id"], f"{number:07d}"))
            stem = folder / f"{number // _FILES_PER_FOLDER:05d}" / f"{number:07d}-{safe_name(id)}"
            yield id, partial(self._part, id, row, stem)

    def sources(self, split: str) -> Sequence[Path]:
        """Return the local file or folder, if there is one, and the folder of the copied audio."""
        local = Path(self.source)
        return [*([local] if local.exists() else []), self.root / safe_name(split)]

    def _open(self, split: str) -> Any:
        """Open the rows as a ``datasets.IterableDataset``."""
        from datasets import DatasetDict, load_dataset, load_from_disk
        from datasets.exceptions import DatasetNotFoundError

        path = Path(self.source)
        if path.suffix in READERS:
            if not path.is_file():
                raise FileNotFoundError(f"No data set {path}.")
            if split != "train":
                raise ValueError(
                    f"{path} is one split, train; got {split!r}. Give a folder of several files."
                )
            return load_dataset(READERS[path.suffix], data_files=self.source, split=split, streaming=True)
        if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
            found = load_from_disk(self.source)
            splits = found if isinstance(found, DatasetDict) else {str(found.split or "train"): found}
            if split not in splits:
                raise ValueError(f"{path} has no split {split!r}; it has {', '.join(splits)}.")
            return splits[split].to_iterable_dataset()
        try:
            return load_dataset(self.source, self.config, split=split, revision=self.revision, streaming=True)
        except (ConnectionError, DatasetNotFoundError) as error:
            raise FileNotFoundError(
                f"No data set {self.source!r}: there is no such file or folder, and the hub answered: {error}"
            ) from error

    def _part(self, id: str, row: Mapping[str, Any], stem: Path) -> Part:
        text = row[self.columns["text"]]
        if not isinstance(text, str) or not text.strip():
            raise CorpusError(f"its text is {text!r}; expected words.")
        path = _audio_file(row[self.columns["audio"]], stem)
        speaker = row.get(self.columns["speaker"])
        name = "" if speaker is None else str(speaker)
        return Part([recording_row(id, path, info(path).seconds, text, name)])


def _audio_file(value: Mapping[str, Any] | None, stem: Path) -> Path:
    """Return the audio file of a row: its own, or a copy at ``stem`` with the suffix of its name."""
    data, name = (value or {}).get("bytes"), (value or {}).get("path") or ""
    if data is None:
        if not name or not Path(name).is_file():
            raise CorpusError(f"no audio: neither bytes nor a file on this machine (its path is {name!r}).")
        return Path(name)
    path = stem.with_name(safe_name(stem.name + Path(name).suffix))
    if not path.is_file() or path.stat().st_size != len(data):
        with atomic_write(path, "wb") as file:
            file.write(data)
    return path
