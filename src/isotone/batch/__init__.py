"""Commands on many files: inputs, plan, work, outputs and the ledger that records them."""

from typing import TYPE_CHECKING

from isotone.late import late

if TYPE_CHECKING:
    from isotone.batch.commands import align_files, transcribe_files
    from isotone.batch.matching import match_files
    from isotone.batch.options import Options, Target, Workers
    from isotone.batch.outcome import Outcome
    from isotone.batch.paging import page_files
    from isotone.batch.plan import OutputConflict
    from isotone.batch.progress import progress_of
    from isotone.batch.publishing import published
    from isotone.batch.work import explain

__all__ = [
    "Options", "Outcome", "OutputConflict", "Target", "Workers", "align_files", "explain", "match_files",
    "page_files", "progress_of", "published", "transcribe_files",
]  # fmt: skip

__getattr__ = late(
    __name__,
    {
        "commands": ("align_files", "transcribe_files"),
        "matching": ("match_files",),
        "options": ("Options", "Target", "Workers"),
        "outcome": ("Outcome",),
        "paging": ("page_files",),
        "plan": ("OutputConflict",),
        "progress": ("progress_of",),
        "publishing": ("published",),
        "work": ("explain",),
    },
)
