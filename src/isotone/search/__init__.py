"""Search of audio by audio: index a folder of recordings, and find where a clip, or the like of it, is in them."""

from isotone.interfaces import Searcher
from isotone.search.build import Built, add_recordings, build_index
from isotone.search.query import Match, query_vectors, search
from isotone.search.searcher import open_searcher
from isotone.search.store import CorruptIndex, IndexMismatch, SearchIndex

__all__ = [
    "Built", "CorruptIndex", "IndexMismatch", "Match", "SearchIndex", "Searcher", "build_index", "open_searcher",
    "query_vectors", "search",
]  # fmt: skip
