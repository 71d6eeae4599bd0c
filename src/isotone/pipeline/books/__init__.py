"""Recordings of a book: where in a long text each of them lies, and what of it nobody has read."""

from isotone.pipeline.books.book import Book
from isotone.pipeline.books.chapters import Chapter, chapters
from isotone.pipeline.books.finding import Finding, find

__all__ = ["Book", "Chapter", "Finding", "chapters", "find"]
