"""Models as local folders, by path, by the name of a pack, or by an id of the Hugging Face hub.

Models are only loaded from local folders. The hub is asked once, with a time limit of seconds. A model that was
downloaded before loads without a network; any other fails at once.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from isotone.model.packs import listed, pack_folder
from isotone.registries import packs
from isotone.registry import nearest
from isotone.text.languages import among, spoken_target

#: The file that marks a model in isotone's own format.
CONFIG = "isotone.json"

#: Time limit of the hub's answer, seconds; the environment variable HF_HUB_ETAG_TIMEOUT sets another.
PATIENCE_S = 2.0

_SMALL = re.compile(
    r"(preprocessor_|processor_)?config\.json|\S*token\S*\.json|vocab\S*|merges\.txt|\S+\.model|README\.md"
)


def check_source(source: Path | str) -> None:
    """Check that :meth:`isotone.model.Model.load` can find a model, before torch is imported.

    Raises:
        FileNotFoundError: there is no such folder or pack, and ``source`` is no id of the hub (USER/NAME), or the hub
            has no such model; or a pack is without its model.
        ConnectionError: the model is not on this machine, and the hub does not answer.
    """
    path = model_folder(source)
    if path.exists():
        return
    here = path.parent.is_dir()
    in_a_folder = here and path.parent != Path()
    if in_a_folder or path.is_absolute() or len(path.parts) != 2:
        known = [p.name for p in path.parent.iterdir() if p.is_dir()] if here else []
        near = nearest(path.name, known if in_a_folder else [*known, *packs.names()])
        raise FileNotFoundError(
            f"No model or run folder {source}, and no model pack of that name.{near} {listed()} A model of the hub is "
            "USER/NAME."
        )
    if _kept(str(source)) is None:
        _files_of(str(source))


def model_folder(source: Path | str) -> Path:
    """Return a model's folder: ``source`` itself, ``source/model`` for a run folder, or the folder of a pack.

    A path that holds no model gives way to the pack of that name. The folder of an unknown name does not exist.

    Raises:
        FileNotFoundError: the pack is installed and its model is missing.
        LookupError, ImportError: two packages claim the name, or the pack does not import.
    """
    folder = Path(source)
    if (folder / "model" / CONFIG).is_file():
        return folder / "model"
    if any((folder / name).is_file() for name in (CONFIG, "config.json")):
        return folder
    return pack_folder(source) or folder


def fetch(repository: str, language: str = "") -> Path:
    """Download a model of the hub, unless it is in the cache; return its folder.

    Args:
        repository: Id of the model, ``user/name``.
        language: Language of the adapter to download, for models with one per language, such as MMS. Default: the
            model's own.

    Raises:
        FileNotFoundError: neither this machine nor the hub has such a model.
        ConnectionError: the model is not on this machine, and the hub does not answer.
        ValueError: the model has no such language.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError

    try:
        files = _files_of(repository)
    except OSError:
        if (kept := _kept(repository)) is not None:
            return kept
        raise
    try:
        return _downloaded(repository, files, language)
    except GatedRepoError as error:
        raise FileNotFoundError(
            f"The files of {repository} are given to those who accept its terms: do so at "
            f"{constants.ENDPOINT}/{repository}, and log in: hf auth login."
        ) from error
    except (ValueError, FileNotFoundError):
        raise
    except Exception as error:
        raise ConnectionError(
            f"{repository} was not fetched whole from the hub ({constants.ENDPOINT}): {_reason(error)}. Try again: "
            "what has come is kept."
        ) from error


@functools.cache
def _files_of(repository: str) -> tuple[str, ...]:
    """List a model's files on the hub; errors as in :func:`fetch`."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        return tuple(_listed(repository))
    except HFValidationError as error:
        raise FileNotFoundError(f"No folder {repository}, and that is no id of the hub: {error}") from error
    except (
        Exception
    ) as error:  # errors of the HTTP library, which differs between versions of the hub's client
        status = getattr(getattr(error, "response", None), "status_code", 0)
        if isinstance(error, RepositoryNotFoundError) or status in (401, 403, 404):
            raise FileNotFoundError(
                f"No folder {repository}, and the hub ({constants.ENDPOINT}) has no model of that name that may be "
                "read. Check the name; for a private one log in: hf auth login."
            ) from error
        raise ConnectionError(
            f"{repository} is not on this machine, neither as a folder nor in the hub's cache, and the hub "
            f"({constants.ENDPOINT}) could not be reached: {_reason(error)}. Check the network, or fetch the model "
            "where there is one; what was fetched once needs none."
        ) from error


def _kept(repository: str) -> Path | None:
    """Return the cache folder with the model's configuration and weights; None if there is none."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for name in (CONFIG, "config.json"):
        try:
            path = try_to_load_from_cache(repository, name)
        except HFValidationError:
            return None
        if isinstance(path, str) and _weights([p.name for p in Path(path).parent.iterdir()]):
            return Path(path).parent
    return None


def _listed(repository: str) -> list[str]:
    """List the model's files on the hub; raise any error within about :data:`PATIENCE_S`."""
    from huggingface_hub import HfApi

    given = os.environ.get("HF_HUB_ETAG_TIMEOUT", "")
    patience = float(given) if given.isdigit() else PATIENCE_S
    files: list[str] = []
    failed: list[Exception] = []

    def ask() -> None:
        try:
            found = HfApi().model_info(repository, timeout=patience)
            files.extend(file.rfilename for file in found.siblings or ())
        except Exception as error:
            failed.append(error)

    # in a thread: the client's timeout does not cover a name server that does not answer
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience + 0.5)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {patience:g} s (HF_HUB_ETAG_TIMEOUT sets another time)")
    if failed:
        raise failed[0]
    return files


def _downloaded(repository: str, files: Sequence[str], language: str) -> Path:
    from huggingface_hub import snapshot_download

    patterns = (
        list(files)
        if CONFIG in files
        else [*(name for name in files if _SMALL.fullmatch(name)), *_weights(files)]
    )
    folder = Path(snapshot_download(repository, allow_patterns=patterns))
    adapters = adapters_of(files)
    if adapters and CONFIG not in files:
        target = among(language, list(adapters)) if language else spoken_target(folder)
        if target in adapters:
            folder = Path(snapshot_download(repository, allow_patterns=[adapters[target]]))
    return folder


def adapters_of(files: Sequence[str]) -> dict[str, str]:
    """Map the languages of a model with one adapter per language to the adapters' files."""
    found: dict[str, str] = {}
    for ending in ("bin", "safetensors"):  # of two files for a language safetensors wins
        for name in files:
            if match := re.fullmatch(rf"adapter\.(.+)\.{ending}", name):
                found[match[1]] = name
    return found


def _weights(files: Sequence[str]) -> list[str]:
    """Choose the files of the weights, one or several; rather safetensors, which needs no unpickling."""
    for stem, ending in (("model", "safetensors"), ("pytorch_model", "bin")):
        part = re.compile(rf"{stem}(-\d+-of-\d+)?\.{ending}(\.index\.json)?")
        if found := [name for name in files if part.fullmatch(name)]:
            return found
    return []


def _reason(error: Exception) -> str:
    """Return the first line of an error's message."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
