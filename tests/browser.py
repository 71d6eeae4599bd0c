"""A headless Chromium that tests drive: pages from files, real mouse and keys, downloads, and what the console says.

It talks the browser's DevTools protocol over two pipes, so that no other package is needed.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

#: Names of the browser; ``ISOTONE_CHROMIUM`` names another one.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WAIT_S = 60.0

Values = dict[str, Any]


def program() -> str | None:
    """Find the browser; None without one."""
    return os.environ.get("ISOTONE_CHROMIUM") or next((p for n in NAMES if (p := shutil.which(n))), None)


def _above(fd: int) -> int:
    """Move a file descriptor to 10 or above."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return moved


class Browser:
    """One window of a running browser.

    Args:
        profile: An empty folder for what the browser writes.
        options: More options of its command line.
    """

    def __init__(self, profile: Path, options: Sequence[str] = ()) -> None:
        name = program()
        assert name
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        command = [
            name, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--remote-debugging-pipe", f"--user-data-dir={profile}", *options, "about:blank",
        ]  # fmt: skip
        # the browser reads from 3 and writes to 4; above them, neither is lost while the other is put in place
        theirs, answers = (_above(fd) for fd in (theirs, answers))
        quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        pipes = [(os.POSIX_SPAWN_DUP2, theirs, 3), (os.POSIX_SPAWN_DUP2, answers, 4)]
        self._pid = os.posix_spawn(name, command, os.environ, file_actions=[*quiet, *pipes])
        os.close(theirs)
        os.close(answers)
        self._rest = b""
        self._count = 0
        self.problems: list[str] = []
        self._loaded = 0
        self._session = ""
        target = next(t for t in self._ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self._ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        with suppress(OSError, AssertionError):
            self._session = ""
            self._ask("Browser.close")
        os.close(self._out)
        os.close(self._in)
        end = time.monotonic() + 10
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.05)

    def open(self, page: Path, hash: str = "") -> None:
        """Open a file, and wait until it is loaded; ``hash`` is the end of its address."""
        if hash:
            self.open(Path("/dev/null"))  # another part of the same page would not be loaded
        self.problems.clear()
        loaded = self._loaded
        self._ask("Page.navigate", url=page.as_uri() + hash)
        while self._loaded == loaded:
            self._take()

    def run(self, script: str) -> Any:
        """Evaluate an expression, or the promise of one, and return its plain value."""
        found = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """Wait until an expression is true; return its value."""
        end = time.monotonic() + _WAIT_S
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
        return found

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the window's size and the reader's setting."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send an event of the mouse: Pressed, Released or Moved."""
        button = {"button": "left", "clickCount": 1} if kind != "Moved" or more.get("buttons") else {}
        self._ask("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **button, **more)

    def click(self, x: float, y: float) -> None:
        """Click."""
        self.mouse("Moved", x, y)
        self.mouse("Pressed", x, y)
        self.mouse("Released", x, y)

    def drag(self, x: float, y: float, to_x: float, **more: Any) -> None:
        """Drag across."""
        self.mouse("Moved", x, y)
        self.mouse("Pressed", x, y, **more)
        for step in range(1, 6):
            self.mouse("Moved", x + (to_x - x) * step / 5, y, buttons=1, **more)
        self.mouse("Released", to_x, y, **more)

    def press(self, key: str, code: int, *, modifiers: int = 0, text: str = "") -> None:
        """Press and release a key; modifiers are 1 Alt, 2 Ctrl, 8 Shift."""
        one = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self._ask("Input.dispatchKeyEvent", type="keyDown", **one, **({"text": text} if text else {}))
        self._ask("Input.dispatchKeyEvent", type="keyUp", **one)

    def downloads(self, folder: Path) -> None:
        """Let downloads go to a folder."""
        self._ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def picture(self, path: Path) -> None:
        """Take a picture of the window."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))

    def paper(self) -> bytes:
        """Print to PDF."""
        return base64.b64decode(self._ask("Page.printToPDF", printBackground=True)["data"])

    def _ask(self, method: str, **parameters: Any) -> Values:
        self._count += 1
        number = self._count
        message: Values = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._take()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])

    def _take(self) -> Values:
        """Take the next message, and note what the page complains of."""
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], _WAIT_S)[0], "the browser says nothing"
            more = os.read(self._in, 1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        message: Values = json.loads(line)
        kind, what = message.get("method", ""), message.get("params", {})
        if kind == "Page.loadEventFired":
            self._loaded += 1
        elif kind == "Runtime.exceptionThrown":
            self.problems.append(str(what["exceptionDetails"]))
        elif kind == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.problems.append(str(what["args"]))
        elif kind == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(what["entry"]))
        elif kind == "Page.javascriptDialogOpening":  # leaving a page with unsaved changes
            self._count += 1
            accept = {"id": self._count, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            os.write(self._out, json.dumps(accept | {"sessionId": self._session}).encode() + b"\0")
        return message


@contextmanager
def browser(profile: Path, options: Sequence[str] = ()) -> Iterator[Browser]:
    """Run a browser."""
    one = Browser(profile, options)
    try:
        yield one
    finally:
        one.close()
