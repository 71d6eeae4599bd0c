"""Windows of audio, and corpus items of windows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.search.windows import cut_windows, item_spans, spread


@settings(max_examples=60, deadline=None)
@given(samples=st.integers(1, 300), window=st.integers(1, 40), hop=st.integers(1, 40))
def test_windows_are_parts_of_the_audio(samples: int, window: int, hop: int) -> None:
    audio = np.arange(1, samples + 1, dtype=np.float32)
    windows = cut_windows(audio, window, hop)
    assert len(windows) >= 1
    padded = np.pad(audio, (0, len(windows) * hop + window))
    for number, one in enumerate(windows):
        np.testing.assert_array_equal(one, padded[number * hop : number * hop + window])
    # no more than half a hop is left out at the end, and no window begins after the audio
    assert (len(windows) - 1) * hop + window >= samples - -(-hop // 2)
    assert len(windows) == 1 or (len(windows) - 1) * hop < samples + hop


@settings(max_examples=60, deadline=None)
@given(windows=st.integers(1, 200), size=st.integers(1, 30))
def test_every_stretch_of_half_an_item_is_whole_in_one(windows: int, size: int) -> None:
    spans = item_spans(windows, size)
    assert all(1 <= length <= size and start + length <= windows for start, length in spans)
    assert spans[-1][0] + spans[-1][1] == windows
    stretch = min(windows, size - max(1, size // 2) + 1)
    for first in range(windows - stretch + 1):
        assert any(start <= first and first + stretch <= start + length for start, length in spans)


@given(count=st.integers(1, 100), most=st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_spread_windows_are_in_order_and_begin_at_the_first(count: int, most: int) -> None:
    chosen = spread(count, most).tolist()
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0
    assert len(chosen) == min(count, most)
    assert most == 1 or chosen[-1] == count - 1
