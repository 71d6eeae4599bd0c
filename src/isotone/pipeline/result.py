"""Results: tiers with times in seconds, scores and counts of frames, made of couplings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from isotone.alignment import SILENCE, Alignment, Origin, Segment, Tier, tier_from_spans
from isotone.audio.boundaries import Changes, Mover
from isotone.pipeline.plausible import long_words
from isotone.pipeline.presence import Evidence
from isotone.pipeline.scores import Scores, score
from isotone.pipeline.sounds import closed, one_closure, slow, widened
from isotone.pipeline.stars import STAR_COST, shared_out
from isotone.tensors import Tensor, torch
from isotone.text.phones import CLOSURE_OF
from isotone.text.tokenizer import Tokenizer, Transcript
from isotone.types import Coupling, Emissions, Grid, Targets


@dataclass(frozen=True)
class Result:
    """The result of one utterance.

    Attributes:
        alignment: Tiers of words (where the text has words) and of the model's tokens.
        text: The recognised text, or the given one.
        frames: Number of frames of the timing head.
        quiet: Spans of those frames whose most likely label is the blank, the word delimiter or silence: the first of
            them, and one past the last.
        grid: Times of the frames.
        score: Fit of the text to the audio, nats per token, 0 at best: see :class:`isotone.pipeline.scores.Scores`.
        frameless: Share of the tokens without a frame, 0 to 1.
        warnings: Sentences on parts of the recording that were left out (:mod:`isotone.pipeline.edges`), and on words
            that are too long (:mod:`isotone.pipeline.plausible`).
        agreement: Agreement of a given text with the audio, 1 at best and near 0 for a wrong text
            (:func:`isotone.pipeline.doubt.agreement`). None for recognised texts and for very short ones.
        words: For every segment of the tier of words its number among the transcript's words; stars for speech that is
            not in the text come after these.
        unlikely: Numbers of the words that have times and may not have been said.
        evidence: Evidence on every word, where single words are judged.
        reached: Scores in nats of the alignments of a given text by head, where the aligners have such a value.
        changes: The boundaries of the tokens where the sound changes, if they were moved there.
    """

    alignment: Alignment
    text: str
    frames: int
    quiet: tuple[tuple[int, int], ...]
    grid: Grid
    score: float
    frameless: float = 0.0
    warnings: tuple[str, ...] = ()
    agreement: float | None = None
    words: tuple[int, ...] = ()
    unlikely: frozenset[int] = frozenset()
    evidence: Evidence | None = None
    reached: Mapping[str, float] = field(default_factory=dict)
    changes: Changes | None = None

    def with_score_of(self, whole: Result) -> Result:
        """Copy the result with the score of another one, of the whole text."""
        return replace(self, alignment=replace(self.alignment, score=whole.score), score=whole.score)


def results(
    ids: Sequence[str],
    seconds: Sequence[float],
    texts: Sequence[str],
    transcripts: Sequence[Transcript],
    tokenizer: Tokenizer,
    emissions: Emissions,
    targets: Targets,
    coupling: Coupling,
    star_cost: float = STAR_COST,
    closures: bool = False,
    moves: Sequence[Mover] = (),
) -> list[Result]:
    """Make the results of a batch.

    Args:
        ids: Utterance ids.
        seconds: Duration of each recording.
        texts: Text of each result.
        transcripts: The words that the tokens belong to.
        tokenizer: Tokenizer of the labels.
        emissions: Emissions of the head that was aligned.
        targets: ``(B, U)`` tokens as they were aligned.
        coupling: Coupling of frames and tokens.
        star_cost: See :func:`isotone.pipeline.stars.with_star`.
        closures: Show the closures that transcripts know as segments of their own; otherwise as part of their stops.
        moves: For every recording, what moves the boundaries of its tokens. Default: they stay.
    """
    spans = coupling.spans().cpu()
    scores = score(emissions, targets, coupling, tokenizer.silence_number, star_cost).to("cpu")
    quiet = quiet_frames(emissions, tokenizer)
    lengths = emissions.lengths.tolist()
    out = []
    for i, name in enumerate(ids):
        times = [(emissions.grid.seconds(s), emissions.grid.seconds(e)) for s, e in spans[i].tolist()]
        times = one_closure(transcripts[i], shared_out(transcripts[i], times))
        times = widened(transcripts[i], times) if tokenizer.unit == "phones" else times
        times, changes = moves[i](times, slow(transcripts[i], tokenizer)) if moves else (times, None)
        times = closed(transcripts[i], times, seconds[i])
        placed = _placed(transcripts[i], times, scores, i)
        tiers = _tiers(seconds[i], tokenizer, transcripts[i], placed, closures)
        fit, frameless = float(scores.fit[i]), float(scores.frameless[i])
        alignment = Alignment(name, seconds[i], tiers, fit)
        warnings = long_words(_word_spans(tokenizer, transcripts[i], placed))
        own = _runs(quiet[i, : lengths[i]])
        out.append(
            Result(
                alignment, texts[i], lengths[i], own, emissions.grid, fit, frameless, warnings,
                words=tuple(_by_word(placed)), changes=changes,
            )
        )  # fmt: skip
    return out


def _word_spans(
    tokenizer: Tokenizer, transcript: Transcript, tokens: Sequence[_Token]
) -> list[tuple[str, float, int]]:
    """List words with their seconds and number of phones or letters, except stars and words without frames."""
    units: Counter[int] = Counter()
    for token, word in zip(transcript.tokens, transcript.token_words):
        if word is not None and token >= 0:
            units[word] += len(tokenizer.labels[token]) if tokenizer.unit == "pieces" else 1
    return [
        (transcript.words[word].text, own[-1].end - own[0].start, units[word])
        for word, own in _by_word(tokens).items()
        if units[word]
    ]


def _by_word(tokens: Sequence[_Token]) -> dict[int, list[_Token]]:
    """Group tokens by word, in order of the words' first tokens."""
    words: dict[int, list[_Token]] = {}
    for token in tokens:
        if token.word is not None:
            words.setdefault(token.word, []).append(token)
    return words


def _tiers(
    duration: float,
    tokenizer: Tokenizer,
    transcript: Transcript,
    tokens: Sequence[_Token],
    closures: bool,
) -> tuple[Tier, ...]:
    # hidden in the tier of tokens: stars, silences, and labels without spelling such as delimiters or <unk>
    hidden = {t for t in set(transcript.tokens) if t < 0 or tokenizer.labels[t] in SILENCE}
    hidden |= {t for t in set(transcript.tokens) - hidden if not tokenizer.writes(t)}
    seen = [t for t in tokens if t.stop is not None or t.number not in hidden]
    own = _tier(tokenizer.unit, _with_stops(seen, tokenizer.labels, closures), duration)
    if not (transcript.words or tokenizer.has_words):
        return (own,)
    words = _by_word(tokens)
    # a word can have a line break before a dash that belongs to it
    labels = [" ".join(transcript.words[w].text.split()) for w in words]
    tier = _tier("words", list(zip(labels, words.values())), duration)
    placed = tuple(
        replace(s, origin=origin_of(transcript, w, t[0].number < 0)) for s, (w, t) in zip(tier, words.items())
    )
    return Tier("words", placed), own


def origin_of(transcript: Transcript, number: int, unknown: bool = False) -> Origin | None:
    """Return the place of a word in a given text; None for other words, and stars that no text has.

    Args:
        transcript: The text.
        number: The word's number.
        unknown: The word is aligned as unknown speech.
    """
    word = transcript.words[number]
    if not transcript.source or word.end <= word.start:
        return None
    reading = "" if unknown else word.normal
    return Origin(transcript.source[word.start : word.end], word.start, word.end, reading)


def _with_stops(
    tokens: Sequence[_Token], labels: Sequence[str], closures: bool
) -> list[tuple[str, list[_Token]]]:
    """Group the tokens of every segment: a closure makes one with its release, or has its own label."""
    groups: list[tuple[str, list[_Token]]] = []
    for token in tokens:
        closed = groups[-1][1][-1] if groups else None
        if token.stop is not None:
            stop = labels[token.stop]
            groups.append((CLOSURE_OF[stop] if closures else stop, [token]))
        elif not closures and closed is not None and (closed.stop, closed.word) == (token.number, token.word):
            groups[-1][1].append(token)
        else:
            groups.append((labels[token.number], [token]))
    return groups


@dataclass(frozen=True, slots=True)
class _Token:
    """A token with frames: its label number, its word, the stop it closes, times, and scores with their weight."""

    number: int
    word: int | None
    stop: int | None
    start: float
    end: float
    weight: float
    log_prob: float
    confidence: float


def _placed(
    transcript: Transcript, times: list[tuple[float, float]], scores: Scores, row: int
) -> list[_Token]:
    """List the tokens that have frames, in order."""
    numbers = (x[row].tolist() for x in (scores.weight, scores.log_prob, scores.confidence))
    stops = transcript.stops or (None,) * len(transcript.tokens)
    rows = zip(transcript.tokens, transcript.token_words, stops, times, *numbers)
    return [_Token(t, word, stop, *span, *own) for t, word, stop, span, *own in rows if span[1] > span[0]]


def _tier(name: str, groups: Sequence[tuple[str, list[_Token]]], duration: float) -> Tier:
    """Make a tier of one segment per group of tokens; scores are means over frames, and stars have none."""
    spans, confidences = [], []
    for label, tokens in groups:
        starred = tokens[0].number < 0
        weight = sum(t.weight for t in tokens)
        log_prob = sum(t.weight * t.log_prob for t in tokens) / weight
        confidence = sum(t.weight * t.confidence for t in tokens) / weight
        spans.append((label, tokens[0].start, tokens[-1].end, None if starred else log_prob))
        confidences.append(None if starred or math.isnan(confidence) else min(1.0, confidence))
    tier = tier_from_spans(name, spans, duration)
    rows = zip(tier, confidences)
    return Tier(name, tuple(Segment(s.label, s.start, s.end, s.score, confidence=c) for s, c in rows))


def quiet_frames(emissions: Emissions, tokenizer: Tokenizer) -> Tensor:
    """Find the frames whose most likely label is the blank, the word delimiter or silence: ``(B, T)`` bool.

    Frames beyond a row's length are undefined.
    """
    size, labels = emissions.logits.shape[2], len(tokenizer.labels)
    numbers = torch.arange(size)
    if size % labels == 0:  # of a head with states, label v has the scores v, V + v, 2 V + v ...
        numbers %= labels
    named = (emissions.blank, tokenizer.delimiter_number, tokenizer.silence_number)
    quiet = torch.isin(numbers, torch.tensor([n for n in named if n is not None]))
    return quiet[emissions.logits.argmax(-1).cpu()]


def _runs(row: Tensor) -> tuple[tuple[int, int], ...]:
    """List the runs of true values of a row: the first position, and one past the last."""
    edge = row.new_zeros(1)
    edges = torch.cat([edge, row, edge]).diff().nonzero()[:, 0].tolist()
    return tuple(zip(edges[::2], edges[1::2]))
