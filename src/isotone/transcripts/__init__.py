"""Transcripts of any kind: files of text, subtitles, annotations and manifests, as lists of passages."""

from isotone.passage import Passage
from isotone.transcripts.passages import numbered
from isotone.transcripts.reading import Source, TranscriptError, open_source, source_in, sources_of

__all__ = ["Passage", "Source", "TranscriptError", "numbered", "open_source", "source_in", "sources_of"]
