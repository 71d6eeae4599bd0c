"""Given texts for alignment: without their markup, with stars for unwritten speech and words without labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from isotone.alignment import STAR
from isotone.text.base import Tokenizer
from isotone.text.markup import Cleaned, bracketed, clean, is_tag, unclear, unheard
from isotone.text.normalize import TextError, Word
from isotone.text.transcript import STAR_NUMBER, Spelling, Transcript, known_graphs
from isotone.text.word_graph import WordGraph

# as words of a text; the label is the first of them
_STAR = re.compile(r"(?<!\S)(?:\*|<star>)(?!\S)")


class OnlyStars(TextError):
    """A text has unknown speech, and nothing else that can be aligned."""


def encode(tokenizer: Tokenizer, text: str, *, keep_markup: bool = False) -> Transcript:
    """Return the labels of a text that is to be aligned.

    These become stars (:mod:`isotone.pipeline.stars`), which match any speech:

    - ``*`` and ``<star>`` as words of their own; neighbours on a line make one star;
    - marks of unclear speech such as ``[inaudible]`` and ``xxx``;
    - words without labels: without pronunciation, without a character in the vocabulary, or with digits that are not
      spelled out in the tokenizer's language. They remain words of the transcript.

    Known markup is left out (:mod:`isotone.text.markup`).

    Args:
        tokenizer: Tokenizer of the model.
        text: The text as written.
        keep_markup: Align markup as text.

    Returns:
        The transcript. Its words have their positions in ``text``; their own text is without the markup within them.
        Its notes list what is not aligned as written.

    Raises:
        OnlyStars: there is nothing but stars to align.
        TextError: there is nothing at all to align; without a pronouncer, labels that are not in the vocabulary.
    """
    source = clean(text, keep=keep_markup)
    given = _Given(tokenizer, source)
    now = 0
    for start, end, starred in _stars(source.text, keep_markup):
        given.add_text(now, start)
        given.add_star(start, end, starred)
        now = end
    given.add_text(now, len(source.text))
    return replace(given.transcript(keep_markup), source=text)


def _stars(text: str, keep_markup: bool) -> Iterator[tuple[int, int, bool]]:
    """Iterate over the spans of stars in order: (start, end, True for ``*`` and ``<star>``)."""
    found = [(*m.span(), True) for m in _STAR.finditer(text)]
    if not keep_markup:
        found += [(*span, False) for span in (*unclear(text), *unheard(text))]
    now = 0
    for start, end, starred in sorted(found):
        if start >= now:  # not inside of another one
            yield start, end, starred
            now = end


@dataclass
class _Given:
    """Builder of a transcript, from the beginning of the text to its end."""

    tokenizer: Tokenizer
    source: Cleaned
    words: list[Word] = field(default_factory=list)
    graphs: list[WordGraph | None] = field(default_factory=list)
    spelled: list[tuple[int | None, tuple[int, ...]]] = field(default_factory=list)
    spoken: list[Word] = field(default_factory=list)
    unread: list[Word] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    unpronounced: list[str] = field(default_factory=list)
    unlabelled: list[str] = field(default_factory=list)

    def add_star(self, start: int, end: int, written: bool) -> None:
        """Add the star at a span of the text; a written star beside another one on its line adds nothing."""
        text = STAR if written else self.source.text[start:end]
        if not written:
            self.unclear.append(text)
        elif self._after_star() and "\n" not in self.source.text[self.words[-1].end : start]:
            return  # another line may be another passage
        self._add(Word(text, text, start, end), (STAR_NUMBER,))

    def add_text(self, start: int, end: int) -> None:
        """Add the words of a part of the text."""
        for word, spelling in self.tokenizer.read(self.tokenizer.split(self.source.text[start:end])):
            placed = replace(word, start=word.start + start, end=word.end + start)
            reason = self._problem(word, spelling)
            if reason is None:
                self.unknown += spelling.unknown
                self.spoken.append(word)
                self._add(placed, spelling.labels, spelling.graph)
            else:
                reason += spelling.missing if reason is self.unpronounced else (word.text,)
                self.unread += [word] if reason is not self.numbers else []
                self._add(placed, (STAR_NUMBER,))

    def transcript(self, keep_markup: bool) -> Transcript:
        """Return the transcript of everything added."""
        tokens = self.tokenizer.join(self.spelled)
        if all(token == STAR_NUMBER for token, _ in tokens):
            kind = OnlyStars if tokens else TextError
            raise kind(f"The text has nothing to align: {self._why_nothing()}.")
        return Transcript(
            tuple(self._placed()), tuple(t for t, _ in tokens), tuple(w for _, w in tokens),
            tuple(dict.fromkeys(self.unknown)), tuple(self._notes(keep_markup)), known_graphs(self.graphs),
            familiar=self.tokenizer.familiar([*self.spoken, *self.unread]), unread=len(self.unread),
        )  # fmt: skip

    def _after_star(self) -> bool:
        """Tell if the last word is a written star."""
        return bool(self.spelled) and self.spelled[-1][1] == (STAR_NUMBER,) and self.words[-1].text == STAR

    def _problem(self, word: Word, spelling: Spelling) -> list[str] | None:
        """Return the list that collects words with the same problem; None for a word with labels."""
        unspelled = [*spelling.unknown, *"".join(spelling.missing)]
        if any(unicodedata.category(c)[0] == "N" for part in unspelled for c in part):
            return self.numbers
        if spelling.missing:
            return self.unpronounced
        return None if spelling.labels else self.unlabelled

    def _placed(self) -> Iterator[Word]:
        """Iterate over the words with their places in the source, and with the punctuation beside stars."""
        text, now = self.source.text, 0
        for i, word in enumerate(self.words):
            start, end = word.start, word.end
            if self.tokenizer.takes_words:
                following = self.words[i + 1].start if i + 1 < len(self.words) else len(text)
                start = now + len(text[now:start]) - len(text[now:start].lstrip())
                end = following - len(text[end:following]) + len(text[end:following].rstrip())
            now = max(end, now)
            shown = word.text if word.text == STAR else text[start:end]
            first, last = self.source.span(start, end)
            yield replace(word, text=shown, start=first, end=last)

    def _add(self, word: Word, labels: tuple[int, ...], graph: WordGraph | None = None) -> None:
        if self.tokenizer.takes_words or labels == (STAR_NUMBER,):
            self.spelled.append((len(self.words), labels))
            self.words.append(word)
            self.graphs.append(graph)
        else:
            self.spelled.append((None, labels))

    def _reasons(self) -> Iterator[str]:
        language = self.tokenizer.language or "a language that is not known (--language)"
        if self.numbers:
            yield f"numbers that are not spelled out in {language}: {listed(self.numbers)}"
        if self.unpronounced:
            yield f"words without pronunciation (--dictionary gives them one): {listed(self.unpronounced)}"
        if self.unlabelled:
            yield f"words without a character of the model's vocabulary: {listed(self.unlabelled)}"
        if self.unclear:
            yield f"what is marked as not understood: {listed(self.unclear)}"

    def _notes(self, keep_markup: bool) -> Iterator[str]:
        if left_out := [markup for markup in self.source.left_out if not is_tag(markup)]:
            yield f"left out as markup (--keep-markup reads it): {listed(left_out)}"
        if not keep_markup and (spoken := [b for b in bracketed(self.source.text) if b not in self.unclear]):
            yield f"aligned as speech, although in brackets: {listed(spoken)}"
        for reason in self._reasons():
            yield f"aligned as unknown speech: {reason}"
        if guessed := self.tokenizer.guessed(self.spoken):
            yield f"pronounced by their letters (--dictionary corrects them): {listed(guessed)}"
        if self.unknown:
            yield f"aligned without what the model has no labels for: {listed(self.unknown)}"

    def _why_nothing(self) -> str:
        if reasons := "; ".join(self._reasons()):
            language = f", {self.tokenizer.language}" if self.tokenizer.language else ""
            other = f"Is it in another language than the model's{language}? " if self.unread else ""
            return (
                f"there are only {reasons}. {other}The {self.tokenizer.unit} are {self.tokenizer.labels[:40]}"
            )
        if self.words:
            return "there are stars in it, and no words"
        if self.source.left_out:
            return f"all of it is markup (--keep-markup reads it): {listed(self.source.left_out)}"
        return "there are no words in it"


def listed(values: Iterable[str], most: int = 20) -> str:
    """Quote distinct values, at most ``most`` of them."""
    distinct = list(dict.fromkeys(values))
    more = f" and {len(distinct) - most} more" if len(distinct) > most else ""
    return ", ".join(map(repr, distinct[:most])) + more
