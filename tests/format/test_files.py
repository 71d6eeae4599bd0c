from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isotone
from isotone.alignment import Alignment, Segment, Tier
from isotone.format import Folder, FormatError, file_name, read, read_folder, write
from isotone.format.ctm import CTMFormat
from isotone.format.textgrid import TextGridFormat
from isotone.interfaces import Format
from tests.paths import DATA

WORDS = Tier("words", (Segment("ŋ", 0.0, 0.5), Segment("b", 0.5, 1.0)))
PHONES = Tier("phones", (Segment("a", 0.0, 0.25), Segment("h#", 0.25, 1.0)))
BOTH = Alignment("utt", 1.0, (WORDS, PHONES))


def only(tier):
    return Alignment("utt", 1.0, (tier,))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("textgrid", BOTH),
        ("json", BOTH),
        ("csv", BOTH),
        ("ctm", only(WORDS)),
        ("audacity", only(WORDS)),
        ("timit", only(PHONES)),
    ],
)
def test_what_is_written_is_read_by_its_suffix(tmp_path, name, expected):
    path = write(BOTH, tmp_path / "new" / "folder", name)
    assert path.parent == tmp_path / "new" / "folder"
    assert path.stem == "utt"
    assert read(path) == expected
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["srt", "vtt"])
def test_formats_that_only_write_say_so(tmp_path, name):
    path = write(BOTH, tmp_path, name)
    with pytest.raises(NotImplementedError, match="writes only"):
        read(path)


def test_every_installed_format_has_a_suffix_and_writes(tmp_path):
    for name in isotone.formats.names():
        format = isotone.formats.build(name)
        assert isinstance(format, Format)
        assert format.suffix.startswith(".")
        assert write(BOTH, tmp_path, format).name.endswith(format.suffix)


def test_a_format_can_be_named_or_built(tmp_path):
    path = tmp_path / "words.lab"
    path.write_text("utt A 0 1 a")
    assert read(path, "ctm").tier("words").labels == ["a"]
    assert read(path, CTMFormat(tier="chars")).tier("chars").labels == ["a"]
    with pytest.raises(
        FormatError, match=r"words.lab: expected a suffix of .*\.textgrid.*; got '.lab': convert it, or name"
    ):
        read(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("name", "suffix"), [("textgrid", ".TEXTGRID"), ("csv", ".Csv"), ("json", ".json")])
def test_encodings_and_the_case_of_suffixes_do_not_matter(tmp_path, name, suffix, encoding):
    path = tmp_path / f"utt{suffix}"
    path.write_bytes(isotone.formats.build(name).dumps(BOTH).encode(encoding))
    assert read(path) == BOTH


def test_line_ends_are_kept_as_they_are(tmp_path):
    alignment = Alignment("u", 1.0, (Tier("words", (Segment("a\r\nb\rc\n", 0.0, 1.0),)),))
    for name in ("textgrid", "json", "csv"):
        assert read(write(alignment, tmp_path, name)) == alignment


def test_errors_name_file_line_and_what_was_expected(tmp_path):
    text = TextGridFormat().dumps(BOTH)
    path = tmp_path / "bad.TextGrid"
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    with pytest.raises(FormatError, match=r"bad\.TextGrid: line \d+: expected .* got the end"):
        read(path)
    path.write_bytes(b"\xe9")
    with pytest.raises(FormatError, match=r"bad\.TextGrid: line 1: expected UTF-8"):
        read(path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.json")


@pytest.mark.parametrize(
    "id", ["../x", "a/b", "/etc/passwd", "..", ".", "", "a\\b", "a:b", "x" * 500, "\0", " a", "ŋ" * 200]
)
def test_no_id_leaves_the_folder(tmp_path, id):
    folder = tmp_path / "out"
    path = write(Alignment(id, 1.0, (WORDS,)), folder, "json")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]
    assert path.resolve().parent == folder.resolve()
    assert read(path).id == id


def test_ids_that_clean_to_one_name_do_not_overwrite_each_other(tmp_path):
    ids = ["a/b", "a_b", "a:b", "a\\b", "a\0b"]
    paths = {write(Alignment(id, 1.0, (WORDS,)), tmp_path, "json") for id in ids}
    assert len(paths) == len(ids)
    assert sorted(read(p).id for p in paths) == sorted(ids)
    assert tmp_path / "a_b.json" in paths


@given(st.lists(st.text(max_size=6), min_size=2, max_size=6, unique=True))
@settings(max_examples=100, deadline=None)
def test_file_names_are_safe_and_differ(ids):
    names = [file_name(id) for id in ids]
    assert len(set(names)) == len(names)
    for name in names:
        assert name == Path(name).name
        assert not name.startswith(".")
        assert len(name.encode()) <= 220


def test_writing_replaces_the_file_whole(tmp_path):
    write(BOTH, tmp_path, "json")
    shorter = Alignment("utt", 0.5)
    path = write(shorter, tmp_path, "json")
    assert read(path) == shorter

    class Failing(TextGridFormat):
        suffix = ".json"

        def dumps(self, alignment):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        write(BOTH, tmp_path, Failing())
    assert read(path) == shorter
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_is_read_with_its_bad_files_reported(tmp_path):
    write(BOTH, tmp_path / "speaker", "textgrid")
    write(Alignment("a/b", 1.0, (WORDS,)), tmp_path, "json")
    (tmp_path / "many.ctm").write_text("one 1 0 1 a\ntwo 1 0 1 b\n")
    (tmp_path / "broken.csv").write_text("nothing\n")
    (tmp_path / "speaker" / "utt.txt").write_text("a transcript beside its TextGrid")
    (tmp_path / "speaker" / "utt.wav").write_bytes(b"RIFF")
    (tmp_path / "speaker" / "._utt.TextGrid").write_bytes(b"\x00\x05\x16\x07")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.json").write_text("{")
    (tmp_path / "film.srt").write_text("1\n")
    (tmp_path / "README.txt").write_text("The recordings of 1986.\nTheir labels.")
    (tmp_path / "info.json").write_text('{"license": "CC0"}')
    (tmp_path / "cut.csv").write_text("tier,label,start,end,score,confidence\nwords,a,0\n")
    folder = read_folder(tmp_path)
    alignments, errors = folder.alignments, folder.errors
    assert set(alignments) == {"a/b", "one", "two", "speaker/utt"}
    assert alignments["speaker/utt"] == Alignment("speaker/utt", 1.0, BOTH.tiers)
    assert alignments["two"].tier("words").labels == ["b"]
    assert [(path.name, type(error)) for path, error in errors] == [("cut.csv", FormatError)]
    assert "cut.csv: line 2: expected 6 fields" in str(errors[0][1])
    assert {path.name: str(error)[len(str(path)) :] for path, error in folder.foreign} == {
        "README.txt": ": line 1: expected start, end and label between tabs; got 'The recordings of 1986.'.",
        "broken.csv": ": line 1: expected the header 'tier,label,start,end,score,confidence'; got 'nothing'.",
        "info.json": ': expected an object with "format": "isotone-alignment"; got other JSON.',
    }


def test_of_one_alignment_in_several_formats_the_most_exact_is_read(tmp_path):
    for name in ("csv", "textgrid", "ctm", "json"):
        write(BOTH, tmp_path, name)
    (tmp_path / "utt.csv").write_text("never read")
    assert read_folder(tmp_path) == Folder({"utt": BOTH})
    (tmp_path / "utt.json").write_text("{")  # a damaged file is reported, and the next best one is read
    folder = read_folder(tmp_path)
    alignments, errors = folder.alignments, folder.errors
    assert alignments["utt"].tier("words") == BOTH.tier("words")
    assert [path.name for path, _ in errors] == ["utt.json"]


def test_of_one_alignment_in_several_formats_one_with_the_tier_is_read(tmp_path):
    write(only(PHONES), tmp_path, "timit")
    write(only(Tier("Word", WORDS.segments)), tmp_path, "textgrid")
    write(Alignment("utt", 1.0, (Tier("A - words", WORDS.segments), PHONES)), tmp_path, "csv")
    for asked, found in ((None, "phones"), ("phones", "phones"), ("words", "Word"), ("a - word", "Word")):
        folder = read_folder(tmp_path, asked)
        assert [tier.name for tier in folder.alignments["utt"].tiers] == [found]
        assert (folder.errors, folder.lacking) == ([], {})
    (tmp_path / "utt.TextGrid").unlink()
    assert read_folder(tmp_path, "words").alignments["utt"].has("A - words")
    lacking = read_folder(tmp_path, "syllables").lacking["utt"]
    assert {file.name: tiers for file, tiers in lacking.items()} == {
        "utt.phn": ("phones",),
        "utt.csv": ("A - words", "phones"),
    }


def test_a_file_whose_tiers_are_ambiguous_is_reported_and_the_next_best_read(tmp_path):
    tiers = (Tier("A - words", (Segment("a", 0, 1),)), Tier("B - words", (Segment("b", 0.5, 1),)))
    path = write(Alignment("utt", 1.0, tiers), tmp_path, "textgrid")
    write(only(WORDS), tmp_path, "csv")
    folder = read_folder(tmp_path, "words")
    assert folder.alignments["utt"].has("words")
    assert [str(error) for _, error in folder.errors] == [
        f"{path}: tiers 'A - words' and 'B - words' overlap ('a' ends at 1 s, 'b' starts at 0.5 s) and cannot be read "
        "as one tier 'words': choose one by its whole name."
    ]


def test_files_that_do_not_name_their_tier_have_the_one_that_is_asked_for_if_there_are_no_others(tmp_path):
    write(only(WORDS), tmp_path, "ctm")
    assert read_folder(tmp_path, "phones").alignments["utt"].has("phones")
    assert read_folder(tmp_path).alignments["utt"].has("words")
    write(only(WORDS), tmp_path, "textgrid")
    assert set(read_folder(tmp_path, "phones").lacking) == {"utt"}, (
        "the CTM file is of words, as the TextGrid"
    )


def test_two_files_of_one_id_are_reported_and_the_first_kept(tmp_path):
    for name, label in (("a", "one"), ("b", "two")):
        (tmp_path / f"{name}.ctm").write_text(f"utt 1 0.000 0.500 {label}\n")
    folder = read_folder(tmp_path)
    alignments, errors = folder.alignments, folder.errors
    assert alignments["utt"].tier("words").labels == ["one"]
    assert [(path.name, str(error)) for path, error in errors] == [
        ("b.ctm", f"{tmp_path / 'b.ctm'}: utterance 'utt' was read from another file already.")
    ]


def test_timit_files_of_one_utterance_are_one_alignment(tmp_path):
    folder = tmp_path / "DR1" / "FVMH0"
    folder.mkdir(parents=True)
    (folder / "SA1.PHN").write_text("0 8000 h#\n8000 16000 s\n")
    (folder / "SA1.WRD").write_text("8000 16000 so\n")
    (folder / "SA1.TXT").write_text("0 20000 So.\n")
    (folder / "SA2.WRD").write_text("8000 16000 so\n")
    (folder / "SA2.TXT").write_text(f"0 {'9' * 400} So.\n")
    (folder / "SA3.PHN").write_text("0 8000 h#\n8000\n")
    (folder / "SA3.WRD").write_text("0 8000 so\n")
    folder = read_folder(tmp_path)
    alignments, errors = folder.alignments, folder.errors
    assert alignments == {
        "DR1/FVMH0/SA1": Alignment(
            "DR1/FVMH0/SA1",
            1.25,
            (
                Tier("words", (Segment("so", 0.5, 1.0),)),
                Tier("phones", (Segment("h#", 0.0, 0.5), Segment("s", 0.5, 1.0))),
            ),
        ),
        "DR1/FVMH0/SA2": Alignment("DR1/FVMH0/SA2", 1.0, (Tier("words", (Segment("so", 0.5, 1.0),)),)),
    }
    assert len(errors) == 1
    assert "SA3.PHN: line 2: expected 'start_sample end_sample label'" in str(errors[0][1])


def test_no_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="Expected a folder of alignment files"):
        read_folder(tmp_path / "none")
    assert read_folder(tmp_path) == Folder()


@pytest.fixture
def lab_format():
    @isotone.formats.register("lab")
    class LabFormat(CTMFormat):
        suffix = ".lab"

    yield LabFormat
    isotone.formats.unregister("lab")


@pytest.mark.usefixtures("lab_format")
def test_formats_of_other_distributions_are_found_by_their_suffix(tmp_path):
    path = tmp_path / "utt.LAB"
    path.write_text("utt 1 0 1 a")
    assert read(path).tier("words").labels == ["a"]
    assert set(read_folder(tmp_path).alignments) == {"utt"}


def test_real_hand_labels_survive_every_lossless_format(tmp_path):
    if not (DATA / "timit_sample").is_dir():
        pytest.skip(f"no TIMIT sample at {DATA}: set ISOTONE_TEST_DATA")
    folder = read_folder(DATA / "timit_sample")
    alignments = folder.alignments
    assert len(alignments) == 80
    assert folder.errors == [], "the corpus's descriptions are no broken label tracks"
    for id, alignment in [*alignments.items()][::8]:
        assert [t.name for t in alignment.tiers] == ["words", "phones"]
        for name in ("textgrid", "json"):
            found = read(write(alignment, tmp_path, name))
            assert found.tiers == alignment.tiers, id
            assert found.duration == alignment.duration
