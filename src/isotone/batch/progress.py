"""Progress of many recordings on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.markup import escape
from rich.progress import MofNCompleteColumn, ProgressColumn, Task
from rich.text import Text

from isotone.progress import bars as bars_of

#: Takes the function that is to be told the share of a recording that is done.
Watch = Callable[[Callable[[float], None]], None]


@contextmanager
def progress(total: int, watch: Watch, there: int = 0) -> Iterator[Callable[[str | None], None]]:
    """Show the number of finished recordings, and the share of a long one that is done.

    Args:
        total: Number of recordings.
        watch: Called with a function to call with the share of a recording that is done, 0 to 1.
        there: Number of recordings done before.

    Yields:
        A function to call with the name of each recording that begins, and with None when it is done.
    """
    with bars_of(MofNCompleteColumn(), _Rate()) as bars:
        label = f"Files ({there} there before)" if there else "Files"
        whole = bars.add_task(label, total=total, completed=there, visible=total > 1)
        window = bars.add_task("", total=1.0, visible=False)
        watch(lambda share: bars.update(window, completed=share, visible=share < 1))

        def step(id: str | None) -> None:
            if id is None:
                bars.advance(whole)
            else:
                bars.update(window, description=escape(id), completed=0.0, visible=False)

        yield step


class _Rate(ProgressColumn):
    """Files per minute."""

    def render(self, task: Task) -> Text:
        """Show the rate of a row that counts files."""
        counts = task.speed is not None and task.total != 1.0
        return Text(f"{60 * task.speed:.0f}/min" if counts and task.speed else "")


def progress_of(files: Sequence[tuple[Path, str]], watch: Watch) -> Iterator[tuple[Path, str]]:
    """Iterate over files, and show the progress on a terminal."""
    with progress(len(files), watch) as step:
        for path, id in files:
            step(id)
            yield path, id
            step(None)
