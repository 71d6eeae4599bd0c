"""The command ``isotone lm``: thin, over :mod:`isotone.text.ngram`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotone.cli.console import explained, fail, say
from isotone.files import check_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isotone.text.tokenizer import Tokenizer


def lm(
    text: Annotated[list[Path], typer.Argument(help="Text files, one sentence per line.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The ARPA file.")],
    order: Annotated[int, typer.Option(help="Length of the longest n-grams.")] = 3,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m",
            help="Model whose words (if it has a word delimiter) or labels (phones, pieces) the sentences are "
            "converted to. Default: words as written.",
        ),
    ] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Use the model's labels even if it has a word delimiter.")
    ] = False,
    held_out: Annotated[
        Path | None, typer.Option(help="Text whose perplexity is printed, to compare orders.")
    ] = None,
) -> None:  # fmt: skip
    """Make an n-gram language model (interpolated modified Kneser-Ney) for the decoder ctc-beam.

    Example: isotone lm transcripts.txt --model runs/ctc --order 3 --out lm.arpa
    """
    from isotone.text.ngram import estimate

    if tokens and model is None:
        fail("--tokens asks for a model's labels: say which by --model.")
    with explained():
        check_target(out, lambda content: content.startswith(b"\\data\\"))
        tokenizer = None
        if model is not None:
            from isotone.model import Model

            tokenizer = Model.load(model).tokenizer
        found = estimate(_sentences(text, tokenizer, tokens), order)
        found.write(out)
        say(f"{len(found.log10_probs)} n-grams written to {out}")
        if held_out is not None:
            perplexity = found.perplexity(_sentences([held_out], tokenizer, tokens))
            typer.echo(f"Perplexity of {held_out}: {perplexity:.1f}")


def _sentences(files: Iterable[Path], tokenizer: Tokenizer | None, tokens: bool) -> Iterable[list[str]]:
    """Split lines of text files into words, or into a tokenizer's words or labels; skip lines it cannot encode."""
    from isotone.text.tokenizer import TextError

    of_words = tokenizer is not None and not tokens and tokenizer.delimiter_number is not None
    for path in files:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder: give the text files in it.")
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 text ({error}): save it as UTF-8.") from error
        for line in text.splitlines():
            if tokenizer is None or not line.strip():
                words = line.split()
            else:
                try:
                    transcript = tokenizer.encode(line)
                except TextError:
                    continue
                if of_words:
                    words = [part for word in transcript.words for part in word.normal.split()]
                else:
                    words = [tokenizer.labels[number] for number in transcript.tokens]
            if words:
                yield words
