"""Reports of commands on many files: counts, warnings, errors and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isotone.cli.console import INTERRUPTED, fail, print_json, say

if TYPE_CHECKING:
    from isotone.batch import Outcome

_NAMED = 20


@contextmanager
def interrupted(out_dir: Path) -> Iterator[None]:
    """Explain after Ctrl-C that the command can be repeated, and exit with the shell's code for it."""
    try:
        yield
    except KeyboardInterrupt:
        fail(
            f"interrupted; what is finished is in {out_dir}, and the same command goes on from there",
            INTERRUPTED,
        )


def finish(
    outcome: Outcome, out_dir: Path, *, strict: bool = False, pages: bool = False, as_json: bool = False
) -> None:
    """Print the outcome of a command, and exit: 1 where files failed, 2 where texts are wrong and strict."""
    if as_json:
        print_json({"out": str(out_dir), **asdict(outcome)})
    else:
        before = f" ({outcome.there} of them there before)" if outcome.there else ""
        count = outcome.done + len(outcome.errors) + outcome.left
        say(f"{outcome.done} of {count} files written to {out_dir}{before}")
        for line in outcome.report:
            say(line)
        if pages:
            _say_pages(out_dir)
    for line in (*_notes(outcome, out_dir), *_warnings(outcome, out_dir)):
        typer.echo(line, err=True)
    if outcome.errors:
        first, path = outcome.errors[0], out_dir / "errors.jsonl"
        fail(f"{len(outcome.errors)} failed ({path} lists them); first: {first['file']}: {first['error']}", 1)
    if strict and (outcome.doubtful or outcome.foreign or outcome.partly):
        raise typer.Exit(2)


def _say_pages(out_dir: Path) -> None:
    """Print where the pages are, how many there are, and how large."""
    from isotone.batch.pages import INDEX, PAGE_SUFFIX

    sizes = [path.stat().st_size for path in out_dir.rglob(f"*{PAGE_SUFFIX}") if path.is_file()]
    largest = f", the largest {max(sizes) / 1e6:.1f} MB" if len(sizes) > 1 else ""
    say(f"Pages: {out_dir / INDEX} ({len(sizes)}, {sum(sizes) / 1e6:.1f} MB{largest})")


def _notes(outcome: Outcome, out_dir: Path) -> Iterator[str]:
    """Lines on files that were kept, removed, or left over."""
    if current := [name for name in outcome.kept if name not in outcome.edited]:
        some = ", ".join(current[:3]) + (" ..." if current[3:] else "")
        yield f"{len(current)} changed since isotone wrote them, and kept (those that you remove are made anew): {some}"
    if outcome.edited:
        yield (
            "kept as they were edited, and not of these options, recordings and texts (those that you remove are made "
            f"anew): {_named(outcome.edited)}"
        )
    if outcome.pruned:
        yield f"{outcome.pruned} recordings that are gone were removed from {out_dir}"
    if outcome.stale:
        yield f"{outcome.stale} recordings in {out_dir} are no longer in the input (--prune removes their files)"


def _warnings(outcome: Outcome, out_dir: Path) -> Iterator[str]:
    """Lines on warnings, and on texts that are wrong."""
    if outcome.warnings:
        first, path = outcome.warnings[0], out_dir / "warnings.jsonl"
        count = len(outcome.warnings)
        yield f"warning: {count} with a warning ({path} lists them); first: {first['file']}: {first['warning']}"
    if outcome.partly:
        yield f"warning: the text is partly not what is said in {_named(outcome.partly)}"
    if outcome.foreign:
        yield f"warning: the text is in another language than the model's in {_named(outcome.foreign)}"
    if outcome.doubtful:
        yield f"warning: the text is likely not what is said in {_named(outcome.doubtful)}"


def _named(files: Sequence[str]) -> str:
    """Count files, and list the first of them."""
    some = "".join(f"\n  {file}" for file in files[:_NAMED])
    rest = len(files) - _NAMED
    more = f"\n  ... and {rest} more" if rest > 0 else ""
    return f"{len(files)}:{some}{more}"
