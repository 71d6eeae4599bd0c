"""Search of audio by audio: index a folder of recordings, and find a clip, or similar audio, in them."""

from isotone.interfaces import Searcher
from isotone.search.build import Built, add_recordings, build_index
from isotone.search.query import Match, query_vectors, search
from isotone.search.removal import remove_recordings
from isotone.search.results import about_matches, write_matches
from isotone.search.searcher import open_searcher
from isotone.search.store import CorruptIndex, IndexMismatch, SearchIndex, Threshold
from isotone.search.threshold import Bar, bar

__all__ = [
    "Bar", "Built", "CorruptIndex", "IndexMismatch", "Match", "SearchIndex", "Searcher", "Threshold",
    "about_matches", "add_recordings", "bar", "build_index", "open_searcher", "query_vectors",
    "remove_recordings", "search", "write_matches",
]  # fmt: skip
