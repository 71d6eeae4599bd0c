"""Many files: which are given, what is done with them, where the results go, and what the ledger says of them."""

from isotone.batch.commands import align_files, transcribe_files
from isotone.batch.options import Options, Target
from isotone.batch.plan import OutputConflict
from isotone.batch.progress import progress_of
from isotone.batch.runs import Outcome, explain

__all__ = [
    "Options", "Outcome", "OutputConflict", "Target", "align_files", "explain", "progress_of",
    "transcribe_files",
]  # fmt: skip
