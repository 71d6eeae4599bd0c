"""The command ``match``: thin, over :func:`isotone.batch.match_files`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone.cli import options as opt
from isotone.cli.console import AsJson, OutOption, explained, path_argument
from isotone.cli.outcomes import finish, interrupted
from isotone.cli.parts import plugin
from isotone.cli.replacing import KeepEdited, Overwrite, Prune, Redo

_Reference = Annotated[
    Path, typer.Argument(help="Audio file that the others are matched with.", parser=path_argument)
]
_Others = Annotated[
    list[Path], typer.Argument(help="Audio files or folders to match with it.", parser=path_argument)
]
_Labels = Annotated[
    Path | None,
    typer.Option(
        help="File of the reference's labels, in any format that isotone reads. Default: beside the reference."
    ),
]
_Only = Annotated[
    str,
    typer.Option(
        help="Pattern of the names of the files to match, such as 'sa1.*': the others are left out."
    ),
]
_Features = Annotated[
    str,
    typer.Option(
        help="What is compared: log-mel; phones or phones:HEAD, the posteriors of --model; layer:N, the hidden states "
        "of its encoder; or several, as log-mel+phones."
    ),
]
_Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Model pack, model or run folder, or a hub id; layers come from any speech encoder. Default for phones: "
        "the English pack.",
        show_default=False,
    ),
]
_Warper = Annotated[
    str | None,
    typer.Option(
        help="How times are found: soft-dtw, dtw or opas; with options as YAML: '{name: opas, step: 3}'. `isotone "
        "plugins --kind warper` lists them. Default: opas with --part, else soft-dtw."
    ),
]
_Part = Annotated[
    str,
    typer.Option(
        help="The recording that is a part of the other: 'other' finds clips in the reference, 'reference' the "
        "reference in longer recordings. Default: both have the same content."
    ),
]
_Refine = Annotated[
    float,
    typer.Option(
        help="Weight by which carried boundaries move, by up to 30 ms, to where the recording's sound changes. "
        "0: they stay where the time map has them.",
        min=0.0,
    ),
]
_Maps = Annotated[
    list[str],
    typer.Option("--map", help="Format of the time map: csv or json (with stretches); repeat for both."),
]


def match(
    reference: _Reference,
    others: _Others,
    labels: _Labels = None,
    only: _Only = "*",
    features: _Features = "log-mel",
    model: _Model = None,
    warper: _Warper = None,
    part: _Part = "none",
    refine: _Refine = 10.0,
    maps: _Maps = ["csv"],  # noqa: B006 - typer copies it
    format: opt.Format = ["textgrid"],  # noqa: B006
    out_dir: OutOption = Path("matches"),
    device: opt.Device = "cpu",
    overwrite: Overwrite = False,
    keep_edited: KeepEdited = False,
    redo: Redo = False,
    prune: Prune = False,
    as_json: AsJson = False,
) -> None:
    """Match recordings with a reference: the same text by another voice, the same piece, or a clip.

    For each recording OUT gets a time map (reference_s, other_s) and, where the reference has labels, its tiers at the
    times of that recording. Stretches of one recording that the other does not have are warnings, in OUT/warnings.jsonl
    and in the time map as JSON.

    Recordings of any length: long ones are compared coarsely first, then in a window around that path.

    Example: isotone match dr1/anna/sa1.wav timit/ --only 'sa1.*' --out carried
    """
    if "phones" in features:
        model = opt.chosen(model)

    from isotone.batch import Target, match_files
    from isotone.warping import Matcher, open_features

    with explained(), interrupted(out_dir):
        target = Target(out_dir, tuple(format), overwrite, redo, prune, keep_edited=keep_edited)
        method = Matcher(open_features(features, model, device), plugin(warper), part, refine)  # type: ignore[arg-type]
        outcome = match_files(reference, others, method, target, labels=labels, maps=maps, only=only)
    finish(outcome, out_dir, as_json=as_json)
