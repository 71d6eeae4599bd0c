"""ELAN's annotation format."""

from __future__ import annotations

import logging
import mimetypes
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np

from isotone.alignment import Alignment, AlignmentError, Tier
from isotone.format.reading import FormatError, Row, build_tier, parse_xml
from isotone.format.ticks import describe_empty, to_ticks
from isotone.interfaces import Format

logger = logging.getLogger(__name__)

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
_TYPE = "default-lt"
_ALIGNED, _REFERRING = "ALIGNABLE_ANNOTATION", "REF_ANNOTATION"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ELANFormat(Format):
    """ELAN annotation format (EAF) 3.0: an independent, time-aligned tier for every tier.

    The resolution is 1 ms. ELAN's annotations need a duration, so a labelled segment without one gets 1 ms, with a
    warning. Silence (empty labels) is not annotated. Characters that XML forbids become U+FFFD.

    When read, tiers of aligned annotations are kept; those that only refer to others are left out, unless they are
    asked for. Then their annotations have the times of those that they refer to, and share them evenly. Times that ELAN
    leaves open are spread evenly between the known ones of their tier and its parent. The length of the audio is
    not kept: it ends with the last annotation.

    The recording is linked if the alignment has its file (:class:`isotone.alignment.Alignment`): by its absolute path,
    and by its name beside the annotation in case it moves.

    Args:
        media: URL of the recording for ELAN, instead of the alignment's file; ``{id}`` stands for the utterance id, as
            in ``"file:///corpus/{id}.wav"``.
        author: Author of the annotation.
        date: Date of the document, ISO 8601; constant, so that equal alignments give equal files.
        dependent: Read tiers whose annotations refer to others, too.
    """

    suffix = ".eaf"

    def __init__(
        self,
        *,
        media: str | None = None,
        author: str = "isotone",
        date: str = "1970-01-01T00:00:00+00:00",
        dependent: bool = False,
    ) -> None:
        self.media = media
        self.author = author
        self.date = date
        self.dependent = dependent

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file."""
        root = ElementTree.Element(
            "ANNOTATION_DOCUMENT",
            {
                "AUTHOR": xml_text(self.author),
                "DATE": self.date,
                "FORMAT": "3.0",
                "VERSION": "3.0",
                f"{{{_XSI}}}noNamespaceSchemaLocation": _SCHEMA,
            },
        )
        header = ElementTree.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
        if links := self._links(alignment):
            kind = mimetypes.guess_type(PurePosixPath(links["MEDIA_URL"]).name)[0] or "audio/x-wav"
            ElementTree.SubElement(header, "MEDIA_DESCRIPTOR", {**links, "MIME_TYPE": kind})
        last = ElementTree.SubElement(header, "PROPERTY", NAME="lastUsedAnnotationId")
        order = ElementTree.SubElement(root, "TIME_ORDER")
        times: list[int] = []
        for tier in alignment.tiers:
            element = ElementTree.SubElement(
                root, "TIER", TIER_ID=xml_text(tier.name), LINGUISTIC_TYPE_REF=_TYPE
            )
            if empty := describe_empty(tier.segments):
                logger.warning("EAF of %r, tier %r: segments get 1 ms: %s.", alignment.id, tier.name, empty)
            segments = [s for s in tier if s.label]
            for segment, pair in zip(segments, to_ticks(segments, alignment.duration, 1000, least=1)):
                times.extend(pair)
                _annotation(element, segment.label, len(times) // 2)
        last.text = str(len(times) // 2)
        # slots are in order of time but named after annotations: ts1 and ts2 belong to a1
        for i in sorted(range(len(times)), key=lambda i: (times[i], i)):
            ElementTree.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{i + 1}", TIME_VALUE=str(times[i]))
        ElementTree.SubElement(
            root,
            "LINGUISTIC_TYPE",
            LINGUISTIC_TYPE_ID=_TYPE,
            TIME_ALIGNABLE="true",
            GRAPHIC_REFERENCES="false",
        )
        ElementTree.indent(root)
        body = ElementTree.tostring(root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file.

        Raises:
            FormatError: not EAF, an annotation without its times, or annotations of a tier that overlap.
        """
        root = parse_xml(text)
        if root.tag != "ANNOTATION_DOCUMENT":
            raise FormatError(f"expected ELAN's ANNOTATION_DOCUMENT; got XML with <{root.tag}>.")
        slots = _slots(root)
        spans = _spans(root, slots) if self.dependent else {}
        tiers = [tier for element in root.iter("TIER") if (tier := _tier(element, slots, spans)) is not None]
        try:
            return Alignment(
                id, max((t.segments[-1].end for t in tiers if t.segments), default=0.0), tuple(tiers)
            )
        except AlignmentError as error:
            raise FormatError(str(error)) from None

    def _links(self, alignment: Alignment) -> dict[str, str]:
        """Return the URLs of the recording; empty if unknown."""
        if self.media is not None:
            return {"MEDIA_URL": xml_text(self.media.replace("{id}", quote(alignment.id, errors="replace")))}
        if alignment.audio is None:
            return {}
        path = alignment.audio.absolute().as_posix()
        # ELAN does not escape its URLs: "/c d.wav" is "file:///c d.wav"
        urls = {"MEDIA_URL": f"file:///{path.lstrip('/')}", "RELATIVE_MEDIA_URL": f"./{alignment.audio.name}"}
        return {name: xml_text(url) for name, url in urls.items()}


def _slots(root: ElementTree.Element) -> dict[str, float]:
    """Return the seconds of every time slot; one without a value lies evenly between its neighbours.

    These are of its tier and of the tier's parent, or else of all tiers.
    """
    slots = {}
    for slot in root.iter("TIME_SLOT"):
        value = slot.get("TIME_VALUE")
        if value is not None and not re.fullmatch(r"[0-9]{1,15}", value):
            raise FormatError(f"expected TIME_VALUE, milliseconds; got {value[:40]!r}.")
        slots[slot.get("TIME_SLOT_ID", "")] = np.nan if value is None else int(value) / 1000
    tiers = {tier.get("TIER_ID", ""): tier for tier in root.iter("TIER")}
    # parents first: a word keeps its times where its phones divide it
    for lineage in sorted((_lineage(tier, tiers) for tier in tiers.values()), key=len):
        used = {a.get(f"TIME_SLOT_REF{i}") for t in lineage[:2] for a in t.iter(_ALIGNED) for i in (1, 2)}
        slots.update(_between({name: value for name, value in slots.items() if name in used}, np.nan))
    return _between(slots)


def _lineage(
    tier: ElementTree.Element, tiers: Mapping[str, ElementTree.Element]
) -> list[ElementTree.Element]:
    """Return a tier, its parent, the parent of that, and so on."""
    lineage = [tier]
    while (above := tiers.get(lineage[-1].get("PARENT_REF", ""))) is not None and above not in lineage:
        lineage.append(above)
    return lineage


def _between(slots: Mapping[str, float], outside: float | None = None) -> dict[str, float]:
    """Fill unknown seconds evenly between the known ones, and before and after all of these by ``outside``.

    Without it they get the nearest known ones.
    """
    values = np.array([*slots.values()])
    known = np.flatnonzero(~np.isnan(values))
    if len(known):
        values = np.interp(np.arange(len(values)), known, values[known], left=outside, right=outside)
    return dict(zip(slots, values.tolist()))


def _spans(root: ElementTree.Element, slots: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return start and end of every annotation by its id; those that refer to one share its time evenly."""
    spans = {
        a.get("ANNOTATION_ID", ""): (
            slots.get(a.get("TIME_SLOT_REF1", ""), np.nan), slots.get(a.get("TIME_SLOT_REF2", ""), np.nan)
        )
        for a in root.iter(_ALIGNED)
    }  # fmt: skip
    tiers = {tier.get("TIER_ID", ""): tier for tier in root.iter("TIER")}
    for tier in sorted(tiers.values(), key=lambda tier: len(_lineage(tier, tiers))):
        sharing: dict[str, list[str]] = {}
        for found in tier.iter(_REFERRING):
            sharing.setdefault(found.get("ANNOTATION_REF", ""), []).append(found.get("ANNOTATION_ID", ""))
        for above, ids in sharing.items():
            edges = np.linspace(*spans.get(above, (np.nan, np.nan)), len(ids) + 1).tolist()
            spans |= dict(zip(ids, pairwise(edges)))
    return spans


def _tier(
    element: ElementTree.Element, slots: Mapping[str, float], spans: Mapping[str, tuple[float, float]]
) -> Tier | None:
    """Read a tier; None for one that depends on others, unless their annotations have spans."""
    name = element.get("TIER_ID", "")
    rows = []
    for number, found in enumerate(element.iter(_ALIGNED), 1):
        start, end = (slots.get(found.get(f"TIME_SLOT_REF{i}", ""), np.nan) for i in (1, 2))
        if np.isnan(start + end):
            raise FormatError(f"tier {name!r}, annotation {number}: expected two time slots with values.")
        if label := found.findtext("ANNOTATION_VALUE") or "":
            rows.append(Row(number, label, start, end))
    if not rows and next(element.iter(_REFERRING), None) is not None:
        if not spans:
            return None
        for number, found in enumerate(element.iter(_REFERRING), 1):
            start, end = spans[found.get("ANNOTATION_ID", "")]
            if np.isnan(start + end):
                raise FormatError(f"tier {name!r}, annotation {number}: it refers to none with times.")
            if label := found.findtext("ANNOTATION_VALUE") or "":
                rows.append(Row(number, label, start, end))
    try:
        return build_tier(name, sorted(rows, key=lambda row: (row.start, row.end)))
    except FormatError as error:
        raise FormatError(str(error).replace("line ", "annotation ", 1)) from None


def _annotation(tier: ElementTree.Element, label: str, number: int) -> None:
    annotation = ElementTree.SubElement(tier, "ANNOTATION")
    alignable = ElementTree.SubElement(
        annotation,
        _ALIGNED,
        ANNOTATION_ID=f"a{number}",
        TIME_SLOT_REF1=f"ts{2 * number - 1}",
        TIME_SLOT_REF2=f"ts{2 * number}",
    )
    ElementTree.SubElement(alignable, "ANNOTATION_VALUE").text = xml_text(label)


def xml_text(text: str) -> str:
    """Return text that XML can hold, with the line ends that it keeps."""
    return _NOT_XML.sub("\ufffd", text).replace("\r\n", "\n").replace("\r", "\n")


ElementTree.register_namespace("xsi", _XSI)
