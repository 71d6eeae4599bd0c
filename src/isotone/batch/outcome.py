"""Outcomes of commands on many files: counts for people, and the lists of an output folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from isotone.batch.analysis import ANALYSIS, OOVS, UTTERANCE_OOVS, tables
from isotone.batch.ledger import Entry, Ledger
from isotone.batch.options import Target
from isotone.batch.pages import INDEX, index
from isotone.batch.plan import Plan
from isotone.batch.work import Work
from isotone.pipeline.language import ANOTHER_LANGUAGE
from isotone.pipeline.verdict import NO_SPEECH, PARTLY, WRONG

#: Lists of an output folder, beside the files of its recordings.
ERRORS, WARNINGS, TRANSCRIPTS = "errors.jsonl", "warnings.jsonl", "transcripts.jsonl"


@dataclass
class Outcome:
    """The outcome of a command on many files.

    Attributes:
        done: Number of files that were written, including those of earlier runs.
        there: Number of files of earlier runs.
        errors: ``{"file", "error"}`` of every file that failed.
        warnings: ``{"file", "warning"}`` of every file that was written with a warning.
        doubtful: Files whose text is likely wrong; they have a warning as well.
        foreign: Files whose text is wrong, and in another language than the model's; they are not among the doubtful.
        partly: Files whose text is partly wrong: with words that were not said, or with other speech.
        texts: The recognised texts by file.
        kept: Files that were changed since isotone wrote them, and are not replaced.
        edited: Those of them that this command would have replaced: they are of other options or inputs.
        left: Number of recordings of which nothing else was to be written; they are not done.
        stale: Recordings of the output folder that are no longer in the input folders.
        pruned: Number of these that were removed.
        files: The files of every recording, below the output folder.
        report: Lines of the command's report on all recordings.
        engine: Engine of the model (:mod:`isotone.model.engine`); empty where there is none.
    """

    done: int = 0
    there: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    partly: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    left: int = 0
    stale: int = 0
    pruned: int = 0
    files: dict[str, list[str]] = field(default_factory=dict)
    report: list[str] = field(default_factory=list)
    engine: str = ""


def outcome_of(entries: Sequence[Entry], plan: Plan, gone: int, pruned: int, ledger: Ledger) -> Outcome:
    """Count the entries of a command."""
    done = [e for e in entries if not e.error]
    return Outcome(
        len(done),
        len(plan.there),
        [{"file": e.file, "error": e.error} for e in entries if e.error],
        warnings_of(done),
        [e.file for e in done if _wrong(e)],
        [e.file for e in done if e.verdict == ANOTHER_LANGUAGE],
        [e.file for e in done if e.verdict == PARTLY and not _wrong(e)],
        {e.file: e.text for e in done},
        plan.kept,
        plan.edited,
        len(plan.left),
        gone - pruned,
        pruned,
        {e.file: ledger.names(e) for e in done},
    )


def _wrong(entry: Entry) -> bool:
    return entry.verdict in (WRONG, NO_SPEECH) or (bool(entry.doubt) and entry.verdict != ANOTHER_LANGUAGE)


def list_names(target: Target, work: Work) -> tuple[str, ...]:
    """Return the names of the lists that :func:`write_lists` writes."""
    tables = (ANALYSIS, OOVS, UTTERANCE_OOVS) if target.tables else ()
    pages = (INDEX,) if target.page else ()
    return (ERRORS, WARNINGS, *((TRANSCRIPTS,) if work.lists_texts else ()), *tables, *pages, *work.reports)


def write_lists(ledger: Ledger, target: Target, work: Work) -> list[str]:
    """Write the folder's lists of errors, warnings and recognised texts, the tables, the index and the work's report.

    Returns:
        The lines of the report.
    """
    entries = ledger.entries(analysis=target.tables or target.page or bool(work.reports))
    done = [e for e in entries if not e.error]
    lists: dict[str, list[dict[str, str]]] = {
        ERRORS: [{"file": e.file, "error": e.error} for e in entries if e.error],
        WARNINGS: warnings_of(done),
    }
    if work.lists_texts:
        lists[TRANSCRIPTS] = [{"file": e.file, "text": e.text} for e in done if e.command == "transcribe"]
    for name, rows in lists.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        ledger.write_report(name, lines.encode(), overwrite=target.overwrite)
    for name, content in tables(entries, target.speaker_characters).items() if target.tables else ():
        ledger.write_report(name, content, overwrite=target.overwrite)
    if target.page:
        ledger.write_report(INDEX, index(entries, ledger), overwrite=target.overwrite)
    report = work.report(entries)
    for name, content in report.contents.items():
        ledger.write_report(name, content, overwrite=target.overwrite)
    return list(report.lines)


def warnings_of(entries: Iterable[Entry]) -> list[dict[str, str]]:
    """Join the warnings of every file into a line; a doubt counts as a warning."""
    found = ((e.file, [*e.warnings, *([e.doubt] if e.doubt else [])]) for e in entries)
    return [{"file": file, "warning": "; ".join(warnings)} for file, warnings in found if warnings]
