import logging
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from isotone import formats, testing
from isotone.alignment import Alignment, Segment, Tier
from isotone.format.elan import ELANFormat
from isotone.transcripts import open_source
from tests.format.strategies import alignments

# the used elements of EAFv3.0.xsd: required attributes, optional attributes, and children in order
SCHEMA = {
    "ANNOTATION_DOCUMENT": (
        {"AUTHOR", "DATE", "VERSION"},
        {"FORMAT", "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"},
        ["HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE"],
    ),
    "HEADER": (set(), {"MEDIA_FILE", "TIME_UNITS"}, ["MEDIA_DESCRIPTOR", "PROPERTY"]),
    "MEDIA_DESCRIPTOR": ({"MEDIA_URL", "MIME_TYPE"}, {"RELATIVE_MEDIA_URL"}, []),
    "PROPERTY": (set(), {"NAME"}, []),
    "TIME_ORDER": (set(), set(), ["TIME_SLOT"]),
    "TIME_SLOT": ({"TIME_SLOT_ID"}, {"TIME_VALUE"}, []),
    "TIER": ({"TIER_ID", "LINGUISTIC_TYPE_REF"}, set(), ["ANNOTATION"]),
    "ANNOTATION": (set(), set(), ["ALIGNABLE_ANNOTATION"]),
    "ALIGNABLE_ANNOTATION": (
        {"ANNOTATION_ID", "TIME_SLOT_REF1", "TIME_SLOT_REF2"}, set(), ["ANNOTATION_VALUE"],
    ),
    "ANNOTATION_VALUE": (set(), set(), []),
    "LINGUISTIC_TYPE": ({"LINGUISTIC_TYPE_ID"}, {"TIME_ALIGNABLE", "GRAPHIC_REFERENCES"}, []),
}  # fmt: skip


def check_schema(element):
    needs, may, children = SCHEMA[element.tag]
    assert needs <= set(element.attrib) <= needs | may
    order = [children.index(child.tag) for child in element]
    assert order == sorted(order)
    for child in element:
        check_schema(child)


def read(text):
    """Read tiers as (name, [(start_ms, end_ms, label)]), by the references in the document."""
    root = ElementTree.fromstring(text.encode())
    check_schema(root)
    slots = [(s.get("TIME_SLOT_ID"), int(s.get("TIME_VALUE"))) for s in root.iter("TIME_SLOT")]
    assert [t for _, t in slots] == sorted(t for _, t in slots)
    times = dict(slots)
    assert len(times) == len(slots)
    ids = [a.get("ANNOTATION_ID") for a in root.iter("ALIGNABLE_ANNOTATION")]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & set(times)
    types = {t.get("LINGUISTIC_TYPE_ID") for t in root.iter("LINGUISTIC_TYPE")}
    assert {t.get("LINGUISTIC_TYPE_REF") for t in root.iter("TIER")} <= types
    return [
        (
            tier.get("TIER_ID"),
            [
                (
                    times[a.get("TIME_SLOT_REF1")],
                    times[a.get("TIME_SLOT_REF2")],
                    a.findtext("ANNOTATION_VALUE"),
                )
                for a in tier.iter("ALIGNABLE_ANNOTATION")
            ],
        )
        for tier in root.iter("TIER")
    ]


def as_xml(label):
    label = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", label)
    return label.replace("\r\n", "\n").replace("\r", "\n")


@given(alignments(silence=True))
@settings(max_examples=100, deadline=None)
def test_every_label_is_annotated_in_a_valid_document(alignment):
    found = read(ELANFormat().dumps(alignment))
    assert [name for name, _ in found] == ["words", "phones"]
    for (_, rows), tier in zip(found, alignment.tiers):
        spoken = [s for s in tier if s.label]
        assert [label for _, _, label in rows] == [as_xml(s.label) for s in spoken]
        assert all(start < end <= alignment.duration * 1000 + 1e-6 for start, end, _ in rows)
        assert all(a[1] <= b[0] for a, b in pairwise(rows))
        moved = 0.5 + sum(s.duration == 0 for s in spoken)
        for (start, end, _), segment in zip(rows, spoken):
            assert abs(start - segment.start * 1000) <= moved + 1e-6
            assert abs(end - segment.end * 1000) <= moved + 1e-6


def test_media_names_the_recording():
    text = ELANFormat(media="file:///corpus/{id}.flac").dumps(Alignment("speaker 1/utt", 1.0))
    media = ElementTree.fromstring(text.encode()).find("HEADER/MEDIA_DESCRIPTOR")
    assert media.get("MEDIA_URL") == "file:///corpus/speaker%201/utt.flac"
    assert "flac" in media.get("MIME_TYPE")
    assert "MEDIA_DESCRIPTOR" not in ELANFormat().dumps(Alignment("u", 1.0))


def media_of(alignment, **options):
    text = ELANFormat(**options).dumps(alignment)
    read(text)  # valid
    found = ElementTree.fromstring(text.encode()).find("HEADER/MEDIA_DESCRIPTOR")
    return None if found is None else found.attrib


def test_the_recording_is_linked_where_its_file_is_known(tmp_path, monkeypatch):
    """The link is an absolute path as ELAN writes it (not percent-encoded), and the name beside the annotation."""
    monkeypatch.chdir(tmp_path)
    alignment = Alignment("u", 1.0, (Tier("words", (Segment("a", 0.0, 1.0),)),), audio=Path("dr 1/sa1.flac"))
    assert media_of(alignment) == {
        "MEDIA_URL": f"file://{tmp_path.as_posix()}/dr 1/sa1.flac",
        "RELATIVE_MEDIA_URL": "./sa1.flac",
        "MIME_TYPE": "audio/flac",
    }
    assert media_of(replace(alignment, audio=Path("/c/sa1.wav"))) == {
        "MEDIA_URL": "file:///c/sa1.wav", "RELATIVE_MEDIA_URL": "./sa1.wav", "MIME_TYPE": "audio/x-wav",
    }  # fmt: skip
    assert media_of(replace(alignment, audio=Path("/c/A & <B>.sph")))["RELATIVE_MEDIA_URL"] == "./A & <B>.sph"
    assert media_of(replace(alignment, audio=None)) is None


def test_a_url_that_is_given_goes_before_the_file_that_is_known():
    alignment = Alignment("u", 1.0, audio=Path("/c/sa1.wav"))
    found = media_of(alignment, media="https://example.org/{id}.mp3")
    assert found == {"MEDIA_URL": "https://example.org/u.mp3", "MIME_TYPE": "audio/mpeg"}


def test_a_file_name_that_is_no_unicode_makes_a_valid_document():
    assert media_of(Alignment("u", 1.0, audio=Path("/c/a\udcff.wav")))["MEDIA_URL"] == "file:///c/a\ufffd.wav"


def test_other_formats_and_comparisons_do_not_mind_the_recording():
    alignment = testing.sample_alignment()
    linked = replace(alignment, audio=Path("/c/sa1.wav"))
    assert linked == alignment
    assert hash(linked) == hash(alignment)
    for name in formats.names():
        if name != "elan":
            assert formats.build(name).dumps(linked) == formats.build(name).dumps(alignment), name


def test_equal_alignments_make_equal_files():
    alignment = Alignment("u", 1.0, (Tier("words", (Segment("a", 0.0, 1.0),)),))
    assert ELANFormat().dumps(alignment) == ELANFormat().dumps(alignment)
    assert 'DATE="2024-05-06T07:08:09Z"' in ELANFormat(date="2024-05-06T07:08:09Z").dumps(alignment)


def test_a_label_without_duration_gets_a_millisecond_and_a_warning(caplog):
    alignment = Alignment("u", 1.0, (Tier("words", (Segment("a", 1.0, 1.0),)),))
    with caplog.at_level(logging.WARNING):
        assert read(ELANFormat().dumps(alignment)) == [("words", [(999, 1000, "a")])]
    assert "'a' at 1.0 s" in caplog.text


@given(alignments(silence=True))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read(alignment):
    text = ELANFormat().dumps(alignment)
    back = ELANFormat().loads(text, "utt")
    written = read(text)
    assert [(tier.name, tier.labels) for tier in back.tiers] == [
        (name, [label for _, _, label in rows]) for name, rows in written
    ]
    for tier, (_, rows) in zip(back.tiers, written):
        assert [(round(s.start * 1000), round(s.end * 1000)) for s in tier] == [row[:2] for row in rows]


def document(slots, *tiers):
    """Write slots, with milliseconds or None, and tiers: name, parent, and words with their slots."""
    times = ""
    for name, ms in slots.items():
        value = "" if ms is None else f"TIME_VALUE='{ms}'"
        times += f"<TIME_SLOT TIME_SLOT_ID='{name}' {value}/>"
    body = ""
    for name, parent, words in tiers:
        rows = (
            f"<ANNOTATION><ALIGNABLE_ANNOTATION TIME_SLOT_REF1='{first}' TIME_SLOT_REF2='{last}'>"
            f"<ANNOTATION_VALUE>{word}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
            for word, first, last in words
        )
        body += f"<TIER TIER_ID='{name}' PARENT_REF='{parent}'>{''.join(rows)}</TIER>"
    return f"<ANNOTATION_DOCUMENT><TIME_ORDER>{times}</TIME_ORDER>{body}</ANNOTATION_DOCUMENT>"


def test_open_times_are_spread_within_their_tier():
    """Another speaker's slots, wherever they are in the file, do not move them."""
    slots = {"a": 0, "b": None, "c": None, "e": 100, "f": 400, "d": 900}
    ann = ("Ann", "", [("so", "a", "b"), ("it", "b", "c"), ("is", "c", "d")])
    found = ELANFormat().loads(document(slots, ann, ("Bob", "", [("on", "e", "f")])), "u")
    assert [(s.start, s.end) for s in found.tier("Ann")] == [
        pytest.approx(x) for x in ((0, 0.3), (0.3, 0.6), (0.6, 0.9))
    ]
    assert [(s.start, s.end) for s in found.tier("Bob")] == [(0.1, 0.4)]


@pytest.mark.parametrize("order", [1, -1])
def test_open_times_of_a_tier_are_within_its_parents(order):
    """A word keeps its times where its phones divide it, and phones may have slots of their own."""
    slots = {"w1": 0, "p1": None, "p2": None, "w2": None, "p3": None, "p4": None, "w3": 900}
    tiers = [
        ("words", "", [("so", "w1", "w2"), ("it", "w2", "w3")]),
        ("phones", "words", [("s", "w1", "p1"), ("ou", "p1", "p2"), ("w", "p2", "w2"), ("it", "w2", "w3")]),
        ("marks", "words", [("x", "p3", "p4")]),
    ]
    found = ELANFormat().loads(document(slots, *tiers[::order]), "u")
    expected = {
        "words": (0, 0.45, 0.9),
        "phones": (0, 0.15, 0.3, 0.45, 0.9),
        "marks": (0.6, 0.75),
    }
    for name, times in expected.items():
        assert [(s.start, s.end) for s in found.tier(name)] == [
            pytest.approx(pair) for pair in pairwise(times)
        ]


def test_open_times_that_end_a_tier_are_between_those_of_others():
    tiers = [("A", "B", [("so", "a", "b")]), ("B", "A", []), ("C", "", [("it", "c", "c")])]
    found = ELANFormat().loads(document({"a": 0, "b": None, "c": 900}, *tiers), "u")
    assert found.tier("A").segments == (Segment("so", 0.0, 0.45),)


def test_times_that_elan_leaves_open_are_spread_and_references_are_left_out():
    slots = "".join(
        f'<TIME_SLOT TIME_SLOT_ID="ts{i}"{value}/>'
        for i, value in enumerate([' TIME_VALUE="0"', "", ' TIME_VALUE="900"'])
    )
    aligned = "".join(
        f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{i}" TIME_SLOT_REF1="ts{i}" TIME_SLOT_REF2="ts{i + 1}">'
        f"<ANNOTATION_VALUE>{word}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
        for i, word in enumerate(["so", "it"])
    )
    reference = (
        '<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="r" ANNOTATION_REF="a0"><ANNOTATION_VALUE>x</ANNOTATION_VALUE>'
        "</REF_ANNOTATION></ANNOTATION>"
    )
    found = ELANFormat().loads(
        f"<ANNOTATION_DOCUMENT><TIME_ORDER>{slots}</TIME_ORDER><TIER TIER_ID='Ann'>{aligned}</TIER>"
        f"<TIER TIER_ID='notes'>{reference}</TIER></ANNOTATION_DOCUMENT>",
        "u",
    )
    assert found == Alignment("u", 0.9, (Tier("Ann", (Segment("so", 0, 0.45), Segment("it", 0.45, 0.9))),))


def toolbox() -> str:
    """A document as Toolbox's and FLEx's users have it: numbered utterances, their text below, its words below that."""
    slots = "".join(f'<TIME_SLOT TIME_SLOT_ID="t{i}" TIME_VALUE="{i * 1000}"/>' for i in range(3))

    def annotation(id: str, label: str, above: str = "") -> str:
        n = int(id[-1]) - 1
        place = f'ANNOTATION_REF="{above}"' if above else f'TIME_SLOT_REF1="t{n}" TIME_SLOT_REF2="t{n + 1}"'
        kind = "REF_ANNOTATION" if above else "ALIGNABLE_ANNOTATION"
        value = f"<ANNOTATION_VALUE>{label}</ANNOTATION_VALUE>"
        return f'<ANNOTATION><{kind} ANNOTATION_ID="{id}" {place}>{value}</{kind}></ANNOTATION>'

    tiers = {
        ("wd@A", "tx@A"): annotation("w1", "so", "x1")
        + annotation("w2", "it", "x1")
        + annotation("w3", "on", "x2"),
        ("tx@A", "ref@A"): annotation("x1", "So it.", "r1") + annotation("x2", "On.", "r2"),
        ("ref@A", ""): annotation("r1", "001") + annotation("r2", "002"),
    }
    body = "".join(
        f'<TIER TIER_ID="{name}" PARENT_REF="{parent}">{rows}</TIER>'
        for (name, parent), rows in tiers.items()
    )
    return f"<ANNOTATION_DOCUMENT><TIME_ORDER>{slots}</TIME_ORDER>{body}</ANNOTATION_DOCUMENT>"


def test_tiers_that_refer_to_others_are_read_where_they_are_asked_for(tmp_path):
    assert [tier.name for tier in ELANFormat().loads(toolbox(), "u").tiers] == ["ref@A"]
    words, text, numbers = ELANFormat(dependent=True).loads(toolbox(), "u").tiers
    assert [(s.label, s.start, s.end) for s in words] == [("so", 0, 0.5), ("it", 0.5, 1), ("on", 1, 2)]
    assert [(s.label, s.start, s.end) for s in text] == [("So it.", 0, 1), ("On.", 1, 2)]
    assert numbers.labels == ["001", "002"]
    (tmp_path / "a.eaf").write_text(toolbox())
    assert [p.text for p in open_source(tmp_path / "a.eaf", ["tx@*"]).passages] == ["So it.", "On."]
    with pytest.raises(ValueError, match="got 'wd@A', 'tx@A', 'ref@A'"):
        open_source(tmp_path / "a.eaf", ["gl@A"])
    with pytest.raises(ValueError, match="tier 'wd@A', annotation 3: it refers to none with times"):
        ELANFormat(dependent=True).loads(toolbox().replace('REF="x2"', 'REF="x9"'), "u")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected XML"),
        ("<tt/>", "got XML with <tt>"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><ANNOTATION_DOCUMENT/>", "without a document type"),
        (
            "<ANNOTATION_DOCUMENT><TIME_SLOT TIME_VALUE='x'/></ANNOTATION_DOCUMENT>",
            "TIME_VALUE, milliseconds",
        ),
        (
            "<ANNOTATION_DOCUMENT><TIER TIER_ID='A'><ALIGNABLE_ANNOTATION/></TIER></ANNOTATION_DOCUMENT>",
            "tier 'A', annotation 1: expected two time slots",
        ),
    ],
)
def test_what_is_not_elans_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ELANFormat().loads(text, "u")
