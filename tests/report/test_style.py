"""Colours, fonts, label fitting and files of the figures."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from isotone.report import collar_figure, save
from isotone.report.style import (
    ALTERNATING,
    CTC,
    JOINT,
    OTTC,
    REFERENCE,
    SPARE,
    drawable,
    families,
    fit_label,
    looks,
    render,
    short,
    text_width,
    tint,
)

# Machado, Oliveira & Fernandes 2009, severity 1.0, on linear RGB
_DEFICIENCIES = {
    "none": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}  # fmt: skip


def _linear(colour: str) -> np.ndarray:
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.072175],
        [0.0193339, 0.119192, 0.9503041],
    ]
    xyz = np.array(to_xyz) @ np.clip(linear, 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _difference(a: str, b: str, deficiency: str) -> float:
    matrix = np.array(_DEFICIENCIES[deficiency])
    return float(np.linalg.norm(_lab(matrix @ _linear(a)) - _lab(matrix @ _linear(b))))


def _luminance(colour: str) -> float:
    return float(_linear(colour) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("deficiency", _DEFICIENCIES)
def test_the_four_families_are_told_apart_by_every_eye(deficiency):
    least = min(
        _difference(a, b, deficiency) for a, b in itertools.combinations([REFERENCE, CTC, OTTC, JOINT], 2)
    )
    assert least > 15  # about 2 is just visible; 15 is plain


@pytest.mark.parametrize("colour", [REFERENCE, CTC, OTTC, JOINT, *SPARE])
def test_colours_stand_out_from_white(colour):
    assert 1.05 / (_luminance(colour) + 0.05) > 2.9


def test_alternating_groups_survive_grey_print():
    dark, light = (_luminance(c) for c in ALTERNATING)
    assert (light + 0.05) / (dark + 0.05) > 3


def test_families_keep_their_colour():
    found = looks(["reference", "CTC (peaky)", "ottc-local", "CTC+OTTC", "wav2vec2"])
    assert [look.colour for look in found.values()] == [REFERENCE, CTC, OTTC, JOINT, SPARE[0]]
    assert looks(["joint"])["joint"].colour == JOINT
    assert looks(["hand", "ctc"], reference="hand")["hand"].colour == REFERENCE
    assert looks(["doctored"])["doctored"].colour == SPARE[0]  # ctc is not a word of it


@given(
    st.lists(
        st.sampled_from(["ctc", "ottc", "joint", "ref", "a", "b", "ctc 2", "ottc 2"]), unique=True, max_size=8
    )
)
@settings(deadline=None, max_examples=40)
def test_no_two_systems_look_alike(names):
    found = looks(names)
    assert list(found) == names
    assert len({(look.colour, look.marker) for look in found.values()}) == len(names)
    assert len({look.colour for look in found.values()}) == len(names)  # at most four families and five spare


def test_tint_mixes_with_white():
    assert tint("#000000", 1.0) == "#000000"
    assert tint("#123456", 0.0) == "#ffffff"
    assert tint("#ff0000", 0.5) == "#ff8080"


def test_ipa_is_drawn_and_what_no_font_has_becomes_a_box():
    ipa = "t͡ʃ\u02c8a\u026aɹ̩ŋʔʰɫθð"
    assert drawable(ipa) == ipa
    assert drawable("a\nb\tc\x00") == "a b c "
    assert drawable("\U0001f9ff\ue000") == "□□"  # an emoji of 2018 and a private character
    assert short("abcdefgh", 5) == "abcd…"
    assert short("abcde", 5) == "abcde"


@pytest.mark.parametrize("text", ["aa", "tcl", "pneumonia", "ŋ", "a $b$ c"])
@pytest.mark.parametrize("size", [6.5, 9.0])
def test_text_width_is_the_width_drawn(text, size):
    figure = Figure(figsize=(4, 1), dpi=200)
    label = figure.text(0.1, 0.5, text, size=size, family=families(), parse_math=False)
    drawn = label.get_window_extent(FigureCanvasAgg(figure).get_renderer()).width / 200
    assert text_width(text, size) == pytest.approx(drawn, rel=0.12, abs=0.01)  # Agg rounds glyphs to pixels


@given(st.sampled_from(["s", "aa", "tcl", "word"]), st.floats(0, 1), st.floats(0, 0.5))
@settings(deadline=None, max_examples=80)
def test_a_label_that_fits_fits(text, width, height):
    fit = fit_label(text, width, height)
    if fit is None:
        assert text_width(text, 6.5) + 0.025 > width or height < 6.5 / 72
        return
    size, rotation = fit
    assert size >= 6.0
    along, across = (width, height) if rotation == 0 else (height, width)
    assert text_width(text, size) <= along
    assert 0.8 * size / 72 <= across


def test_more_room_gives_larger_type():
    fits = [fit_label("tcl", width, 0.3) for width in (0.02, 0.08, 0.12, 0.17, 0.4)]
    assert fits[0] is None
    assert fits[1] is not None
    assert fits[1][1] == 90
    level = [f[0] for f in fits[1:] if f is not None and f[1] == 0]
    assert level == sorted(level)
    assert level[-1] == 9


def test_save_writes_what_the_name_says(tmp_path):
    figure = collar_figure({"CTC": {0.01: 50.0, 0.02: 60.0}})
    assert save(figure, tmp_path / "a.png") == (tmp_path / "a.png",)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    both = save(figure, tmp_path / "sub" / "v1.2")
    assert both == (tmp_path / "sub" / "v1.2.png", tmp_path / "sub" / "v1.2.svg")
    assert b"<svg" in both[1].read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "sub"]


def test_a_figure_that_cannot_be_drawn_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    figure = Figure()
    figure.text(0, 0, "$\\frac$", parse_math=True)  # no such formula: drawing raises
    with pytest.raises(ValueError, match="frac"):
        save(figure, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_render_refuses_other_kinds():
    with pytest.raises(ValueError, match=r"png or svg; got 'gif'"):
        render(Figure(), "gif")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_equal_figures_give_equal_files(kind):
    one, two = (render(collar_figure({"CTC": {0.01: 50.0, 0.2: 99.0}}), kind, 60) for _ in range(2))
    assert one == two


def test_the_users_settings_neither_change_nor_matter():
    plain = render(collar_figure({"CTC": {0.01: 50.0, 0.2: 99.0}}), "png", 60)
    with mpl.rc_context({"font.size": 30, "axes.labelpad": 40, "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        odd = render(collar_figure({"CTC": {0.01: 50.0, 0.2: 99.0}}), "png", 60)
        assert dict(mpl.rcParams) == before
    assert odd == plain
