"""``isotone export``: models for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone.cli.console import explained, fail, say


def export(
    source: Annotated[Path, typer.Argument(help="Run or model folder, or the name of a model pack.")],
    folder: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write a model that plain transformers loads to this folder."),
    ] = None,
    onnx: Annotated[
        Path | None,
        typer.Option(
            help="Write a model that onnxruntime runs to this folder, with all that alignment needs beside it. Given "
            "the model's own folder, it comes beside the weights, and isotone align takes it. It is checked against "
            "torch first. Needs the extra: isotone\\[onnx]."
        ),
    ] = None,
    audio: Annotated[
        list[Path] | None,
        typer.Option(help="Recording to check --onnx with, beside noise; may be given several times."),
    ] = None,
    head: Annotated[
        str, typer.Option(help="CTC head that --out writes. Default: the head of the text.")
    ] = "",
    push: Annotated[
        str | None,
        typer.Option(
            help="Upload to this id of the Hugging Face hub, USER/NAME: the folder of --out, or the model."
        ),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
) -> None:
    """Export a model: for plain transformers, for onnxruntime, or to the Hugging Face hub with its model card.

    A folder is written whole or not at all, and never over other files.

    Example: isotone export runs/librispeech/ctc --out wav2vec2-ctc

    Example: isotone export english --onnx english-onnx --audio talk.wav
    """
    if folder is None and push is None and onnx is None:
        fail("Nothing to do: give --out FOLDER, --onnx FOLDER, --push USER/NAME, or several of them.")
    if audio and onnx is None:
        fail("--audio has recordings to check a graph of ONNX with: give --onnx FOLDER too.")
    with explained():
        if onnx is not None:
            _write_onnx(source, onnx, audio or [])
        if folder is not None:
            from isotone.model import Model
            from isotone.model.hub import copy_card, export_transformers

            export_transformers(Model.load(source), folder, head)
            copy_card(source, folder)
            say(f"Model: {folder}")
        if push is not None:
            from isotone.model.hub import push_to_hub

            say(f"Uploaded: {push_to_hub(folder or source, push, private=private)}")


def _write_onnx(source: Path, folder: Path, audio: list[Path]) -> None:
    """Write a model as ONNX, and print its largest difference from torch."""
    from importlib.util import find_spec

    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        fail(f"--onnx needs {' and '.join(missing)}: pip install 'isotone[onnx]'.")
    from isotone import audio as recordings
    from isotone.model import Model
    from isotone.model.fetch import model_folder
    from isotone.model.onnx import add_onnx, export_onnx

    model = Model.load(source)
    samples = [recordings.load(path, model.encoder.sample_rate) for path in audio]
    own = model_folder(source)
    if folder.exists() and any(one.exists() and one.samefile(folder) for one in (source, own)):
        difference = add_onnx(model, own, samples)
    else:
        difference = export_onnx(model, folder, samples)
    say(f"Model: {folder} (logits differ from torch's by {difference:.1e} at most)")
