"""Typed settings from YAML: a schema, layers of files, overrides, and errors that name the key.

Every recipe is read by :func:`load`. A schema is a dataclass; what it leaves open (``dict[str, Any]``) are the options
of a plugin.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from omegaconf import DictConfig, OmegaConf, SCMode
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from isotone.registry import nearest
from isotone.training.experiments import alternatives, shared_folder

T = TypeVar("T")


class RecipeError(ValueError):
    """A recipe or an override cannot be used; the message says which key and what to do."""


@dataclass(frozen=True)
class Presets:
    """Files that an override names instead of a value, as in ``data=synthetic``.

    Attributes:
        keys: The overrides that name presets. Default: none do.
        folder: Where presets lie, relative to the recipe's folder.
        before: True where the experiment changes a preset; otherwise a preset changes the experiment.
    """

    keys: Collection[str] = ()
    folder: str = "."
    before: bool = False


def load(
    schema: type[T],
    path: Path | str,
    overrides: Sequence[str] = (),
    *,
    presets: Presets | None = None,
    shared: str | None = None,
) -> T:
    """Read an experiment: ``base.yaml`` of its folder, the experiment, presets, then dot-list overrides.

    An experiment (or a preset) with ``extends: NAME`` states its difference from another. Wherever a later layer gives
    a part that the schema leaves open another ``name`` (of a plugin), it replaces the whole part, so that no option of
    the old plugin is left. Values may use other keys by interpolation (``${seed}``). ``output`` is
    ``runs/RECIPE/EXPERIMENT`` unless a layer says otherwise.

    Args:
        schema: A dataclass with a field ``output``; a field without a value in any layer is an error.
        path: The experiment's YAML, in its recipe's folder even where it lies in the shared one.
        overrides: ``key=value`` pairs with dotted keys.
        presets: Overrides that name files. Default: none do.
        shared: Name of the folder beside the recipe's with experiments of several recipes; the recipe's own file of
            the same name comes after the shared one.

    Raises:
        FileNotFoundError: no such file; the message lists the folder's experiments, or the recipes there are.
        RecipeError: unknown or missing keys, values of the wrong type.
    """
    path, presets = Path(path), presets or Presets()
    base = path.with_name("base.yaml")
    first = _files(base, shared) if base.is_file() and base != path else []
    experiment = _files(path, shared)
    named, plain = _split_overrides(path.parent, overrides, presets)
    chosen = [file for preset in named for file in _files(preset, shared)]
    layers = [*first, *chosen, *experiment] if presets.before else [*first, *experiment, *chosen]
    try:
        merged: Any = OmegaConf.create({"output": f"runs/{path.parent.resolve().name}/{path.stem}"})
        for layer in layers:
            merged = _merge(merged, _read(layer), schema)
        merged.pop("extends", None)
        merged = _merge(merged, OmegaConf.from_dotlist(plain), schema)
        settings = OmegaConf.merge(OmegaConf.structured(schema), merged)
        # a layer may ask for a value ("???") where the schema has a default
        if missing := sorted(OmegaConf.missing_keys(settings) | OmegaConf.missing_keys(merged)):
            raise RecipeError(f"{path}: no value for {', '.join(missing)}. Give it as {missing[0]}=VALUE.")
        loaded: T = OmegaConf.to_object(settings)  # type: ignore[assignment]
    except OmegaConfBaseException as error:
        raise RecipeError(f"{path}: {_explain(error)}") from error
    return loaded


def load_saved(schema: type[T], path: Path) -> T:
    """Read the settings that a run saved.

    Interpolations are resolved. Settings that the file lacks, as of a run from before they existed, have the schema's
    defaults; those that no longer exist are left out.
    """
    layer = _keep_known(_read(path), schema)
    settings = OmegaConf.merge(OmegaConf.structured(schema), layer)
    loaded: T = OmegaConf.to_container(  # type: ignore[assignment]
        settings, resolve=True, structured_config_mode=SCMode.INSTANTIATE
    )
    return loaded


def to_yaml(settings: Any) -> str:
    """Write settings as YAML, for the run folder."""
    return OmegaConf.to_yaml(OmegaConf.structured(settings), resolve=True)


def differences(path: Path, settings: Any, ignored: Collection[str] = ("output",)) -> list[str]:
    """Compare settings with those that a run saved.

    Settings that the file lacks, as of a run from before they existed, have the schema's defaults.

    Args:
        path: The run's YAML.
        settings: An instance of its schema.
        ignored: Top-level keys that may differ.

    Returns:
        Lines such as ``train.steps is 600 there, 1000 here``, sorted; nothing where both are alike.
    """
    before: Any = OmegaConf.load(path)
    with contextlib.suppress(OmegaConfBaseException):  # it has settings that no longer exist
        before = OmegaConf.merge(OmegaConf.structured(type(settings)), before)
    there, here = (dict(flatten(s)) for s in (OmegaConf.to_container(before, resolve=True), asdict(settings)))
    return [
        f"{key} is {there.get(key, 'nothing')} there, {here.get(key, 'nothing')} here"
        for key in sorted({*there, *here})
        if key.partition(".")[0] not in ignored and there.get(key) != here.get(key)
    ]


def flatten(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and values of nested dictionaries; lists and empty dictionaries are values."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _files(path: Path, shared: str | None, seen: tuple[str, ...] = ()) -> list[Path]:
    """The files of an experiment in their order: what it extends, the shared file, the recipe's own."""
    if path.stem in seen:
        raise RecipeError(f"{path}: {' extends '.join((*seen, path.stem))}, which has no end.")
    folders = [path.parent] if shared is None else [shared_folder(path.parent, shared), path.parent]
    files = [file for folder in folders if (file := folder / path.name).is_file()]
    if not files or not path.parent.is_dir():
        raise FileNotFoundError(f"No recipe {path}.{alternatives(path, shared)}")
    bases = [str(base) for file in files if (base := _read(file).get("extends"))]
    before = _files(path.with_name(f"{bases[-1]}.yaml"), shared, (*seen, path.stem)) if bases else []
    return [*before, *files]


def _split_overrides(
    folder: Path, overrides: Sequence[str], presets: Presets
) -> tuple[list[Path], list[str]]:
    """The files of presets, and the other overrides."""
    named, plain = [], []
    for item in overrides:
        key, separator, value = item.partition("=")
        if not separator:
            raise RecipeError(f"An override is key=value; got {item!r}.")
        if key not in presets.keys:
            plain.append(_checked(item))
            continue
        if value.startswith("{"):
            raise RecipeError(
                f"{key} names a preset, a file of the recipe; got {value}. Options are given one by one: "
                f"{key}.name=VALUE."
            )
        file = folder / presets.folder / f"{value}.yaml"
        if not file.is_file():
            known = sorted(p.stem for p in file.parent.glob("*.yaml") if p.stem != "base")
            raise RecipeError(f"No preset {value!r}: {file} is not there.{nearest(value, known)}")
        named.append(file)
    return named, plain


def _checked(override: str) -> str:
    try:
        OmegaConf.from_dotlist([override])
    except YAMLError as error:
        raise RecipeError(f"The value of {override!r} is not YAML: {' '.join(str(error).split())}") from error
    return override


def _read(path: Path) -> DictConfig:
    try:
        layer = OmegaConf.load(path)
    except YAMLError as error:
        raise RecipeError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path} is not UTF-8: {error.reason}; save the file as UTF-8.") from error
    if not isinstance(layer, DictConfig):
        raise RecipeError(f"{path}: expected keys and values; got {OmegaConf.to_container(layer)}.")
    return layer


def _merge(base: Any, change: Any, schema: Any) -> Any:
    """Merge; an open part whose ``name`` (the plugin) changes is replaced whole, so that no option of another is left.

    Args:
        base: Is changed.
        change: What comes over it.
        schema: Type of this part: a dataclass, a dictionary of them, or anything else for an open part.
    """
    for key in list(change):
        if _has_no_value(change, key):
            base[key] = change._get_node(key)  # as it is written: "???" or "${...}"
            continue
        new = change[key]
        old = base[key] if key in base and not _has_no_value(base, key) else None
        if isinstance(old, DictConfig) and isinstance(new, DictConfig):
            part = _part(schema, str(key))
            replaced = (
                not is_dataclass(part) and "name" in new and "name" in old and new["name"] != old["name"]
            )
            base[key] = new if replaced else _merge(old, new, part)
        else:
            base[key] = new
    return base


def _has_no_value(node: Any, key: Any) -> bool:
    return OmegaConf.is_missing(node, key) or OmegaConf.is_interpolation(node, key)


def _part(schema: Any, key: str) -> Any:
    """Type of a key's value; None where the schema does not say."""
    if is_dataclass(schema):
        hint = get_type_hints(schema).get(key)
        if get_origin(hint) in (Union, types.UnionType):  # X | None
            hint = next(iter(get_args(hint)))
        return hint
    return get_args(schema)[1] if get_origin(schema) is dict else None


def _keep_known(values: Any, schema: Any) -> Any:
    """Leave out the keys that a schema does not have."""
    known = {f.name for f in fields(schema)}
    kept = OmegaConf.create({})
    for key in values:
        if key not in known:
            continue
        node, part = values._get_node(key), _part(schema, str(key))
        nested = is_dataclass(part) and isinstance(node, DictConfig) and not _has_no_value(values, key)
        kept[key] = _keep_known(node, part) if nested else node
    return kept


def _explain(error: OmegaConfBaseException) -> str:
    message = str(error).split("\n")[0]
    key = getattr(error, "full_key", None)
    schema = getattr(error, "object_type", None)
    if key and "not in" in message:
        known = [f.name for f in fields(schema)] if is_dataclass(schema) else []
        return f"unknown key {key!r}.{nearest(str(key).rpartition('.')[2], known)}"
    return f"{key}: {message}" if key else message
