"""A page of the web that aligns: a recording and its text become words and phones with times, and files of them.

    pip install "isotone[space]" && python space/app.py

It runs as a Space of Hugging Face as well, with the README.md and the requirements.txt beside it.
"""

from __future__ import annotations

import html
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Seconds of the longest recording, whose page is still shown quickly.
LONGEST_S = 600
ABOUT = """# isotone

The time of every word and phone of a text in its recording, by isotone's English model.

Files are deleted after an hour.
"""
COLUMNS = ["start s", "end s", "word", "phones", "confidence"]
_HEIGHT = 720


@dataclass(frozen=True)
class Answer:
    """What is shown of an alignment.

    Attributes:
        words: Start and end in seconds, word, phones and confidence (0 to 1) of every word.
        notes: Warnings, one per line.
        page: The page to look at and to listen to, as a file.
        files: TextGrid and subtitles.
    """

    words: list[list[Any]]
    notes: str
    page: Path
    files: tuple[Path, ...]


def aligned(recording: str | Path | None, text: str, folder: Path) -> Answer:
    """Align a text with a recording, and write the page and the files to a folder.

    Args:
        recording: File of the recording.
        text: What is said in it.
        folder: An empty folder.

    Raises:
        ValueError: there is no recording or no text, the recording is too long, or the text does not fit in it.
        OSError, LookupError: see :func:`isotone.align`.
    """
    import isotone
    from isotone import audio
    from isotone.report.recording_page import recording_page

    if not recording:
        raise ValueError("There is no recording: upload one, or record one.")
    if not text.strip():
        raise ValueError("There is no text: write what is said in the recording.")
    if (seconds := audio.info(recording).seconds) > LONGEST_S:
        raise ValueError(
            f"The recording has {seconds:.0f} s, and {LONGEST_S} are the most here. The command takes any length."
        )
    found = isotone.align(recording, text)
    files = tuple(found.save(folder / f"alignment.{suffix}") for suffix in ("TextGrid", "srt"))
    alignments = {"isotone": found.alignment}
    page = folder / "alignment.page.html"
    shown = recording_page("alignment", found.samples, found.sample_rate, alignments, notes=found.warnings)
    page.write_text(shown, encoding="utf-8")
    return Answer(_rows(found), "\n".join(found.warnings), page, files)


def _rows(found: Any) -> list[list[Any]]:
    """Return a row per word."""
    phones = [segment for tier in found.alignment.tiers if tier.name == "phones" for segment in tier]
    rows = []
    for word in found.words:
        if word.label:
            inside = [p.label for p in phones if word.start <= (p.start + p.end) / 2 < word.end]
            sure = "" if word.confidence is None else round(word.confidence, 2)
            rows.append([round(word.start, 3), round(word.end, 3), word.label, " ".join(inside), sure])
    return rows


def framed(page: Path) -> str:
    """Show a page inside of another; its scripts see nothing of the outer one."""
    content = html.escape(page.read_text(encoding="utf-8"), quote=True)
    style = f"width: 100%; height: {_HEIGHT}px; border: 0"
    allowed = "allow-scripts allow-downloads"
    return f'<iframe title="page" sandbox="{allowed}" style="{style}" srcdoc="{content}"></iframe>'


def interface() -> Any:
    """Make the page of the web; needs gradio."""
    import gradio

    def answer(recording: str | None, text: str) -> Iterator[Sequence[Any]]:
        with tempfile.TemporaryDirectory(prefix="isotone-") as folder:
            try:
                found = aligned(recording, text, Path(folder))
            except (ValueError, OSError, LookupError) as error:
                raise gradio.Error(str(error)) from error
            # gradio copies the files before it asks for more: the folder goes then
            yield (
                found.words,
                found.notes,
                framed(found.page),
                [str(path) for path in (*found.files, found.page)],
            )

    with gradio.Blocks(title="isotone", delete_cache=(3600, 3600)) as made:
        gradio.Markdown(ABOUT)
        with gradio.Row():
            recording = gradio.Audio(type="filepath", label="Recording", sources=["upload", "microphone"])
            text = gradio.Textbox(label="What is said in it", lines=6)
        button = gradio.Button("Align", variant="primary")
        page = gradio.HTML()
        words = gradio.Dataframe(headers=COLUMNS, label="Words", interactive=False)
        notes = gradio.Textbox(label="Warnings", interactive=False)
        files = gradio.Files(label="TextGrid, subtitles, page")
        button.click(answer, [recording, text], [words, notes, page, files], api_name="align")
    return made


if __name__ == "__main__":
    interface().launch()
