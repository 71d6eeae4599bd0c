"""Draw the rooms of isotone and their imports, from the code: ``python docs/architecture.py`` writes architecture.svg.

A room is a package or a module right inside ``src/isotone``. Each stands above every room that it imports. Of the
imports, those that follow from others are left out of the drawing.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "src" / "isotone"

Graph = dict[str, set[str]]


def imported(path: Path) -> Iterator[str]:
    """Dotted names that a module imports when it is imported or run, except for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def room_of(path: Path) -> str:
    """The room of a file of the core."""
    first = path.relative_to(CORE).parts[0]
    return first.removesuffix(".py")


def rooms() -> Graph:
    """The rooms that each room imports."""
    names = {room_of(path) for path in CORE.rglob("*.py")} - {"__init__", "__main__"}
    graph: Graph = {name: set() for name in names}
    for path in CORE.rglob("*.py"):
        room = room_of(path)
        if room not in graph:
            continue
        for name in imported(path):
            parts = name.split(".")
            if parts[0] == "isotone" and len(parts) > 1:
                # `from isotone import losses` names a registry
                other = parts[1] if parts[1] in names else "registries"
                if other != room and not (len(parts) == 2 and parts[1].startswith("__")):
                    graph[room].add(other)
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[str]:
    """Rooms that import themselves by way of others."""
    return sorted(name for name in graph if name in _below(graph, name))


def _below(graph: Mapping[str, set[str]], name: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[name])
    while waiting:
        other = waiting.pop()
        if other not in seen:
            seen.add(other)
            waiting += graph[other]
    return seen


def levels(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """Height of every room: above all that it imports."""
    height: dict[str, int] = {}
    while len(height) < len(graph):
        ready = [n for n in graph if n not in height and graph[n] <= height.keys()]
        if not ready:
            raise ValueError(f"The rooms import each other in circles: {', '.join(circles(graph))}.")
        height |= {n: 1 + max((height[o] for o in graph[n]), default=-1) for n in ready}
    return height


def reduced(graph: Mapping[str, set[str]]) -> Graph:
    """The imports that do not follow from others."""
    return {
        name: {o for o in others if not any(o in _below(graph, p) for p in others - {o})}
        for name, others in graph.items()
    }


def _placed(rows: dict[int, list[str]], arrows: Graph) -> dict[str, tuple[float, float]]:
    """Coordinates of the rooms: in every row they are ordered by the means of their neighbours, for few crossings."""
    beside: Graph = {name: set(others) for name, others in arrows.items()}
    for name, others in arrows.items():
        for other in others:
            beside[other].add(name)
    x: dict[str, float] = {}
    for turn in range(21):
        for level in sorted(rows, reverse=turn % 2 == 1):
            row = rows[level]
            if turn:
                row.sort(key=lambda name: sum(x[o] for o in beside[name]) / max(1, len(beside[name])))
            step = 9.6 / max(4, len(row))
            x |= {name: (i - (len(row) - 1) / 2) * step + 0.35 * (level % 2) for i, name in enumerate(row)}
    return {name: (x[name], float(level)) for level, row in rows.items() for name in row}


def draw(path: Path) -> None:
    """Write the drawing."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "isotone"  # the same drawing gives the same file
    from matplotlib import pyplot as plt

    graph = rooms()
    height = levels(graph)
    rows: dict[int, list[str]] = defaultdict(list)
    for name in sorted(height):
        rows[height[name]].append(name)
    place = _placed(rows, reduced(graph))
    figure, axes = plt.subplots(figsize=(9, 0.95 * len(rows) + 0.6))
    for name, others in sorted(reduced(graph).items()):
        for other in sorted(others):
            (x, y), (u, v) = place[name], place[other]
            axes.annotate(
                "",
                (u, v + 0.24),
                (x, y - 0.24),
                arrowprops={"arrowstyle": "-|>", "color": "#8a94a6", "lw": 0.9},
            )
    for name, (x, y) in place.items():
        package = (CORE / name).is_dir()
        axes.text(
            x, y, name, ha="center", va="center", fontsize=11, color="#16324f",
            bbox={"boxstyle": "round,pad=0.45", "fc": "#dbe9f6" if package else "#f4f1e6", "ec": "#5b7ea4"},
        )  # fmt: skip
    axes.set_xlim(min(x for x, _ in place.values()) - 1.3, max(x for x, _ in place.values()) + 1.3)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_axis_off()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    draw(ROOT / "docs" / "architecture.svg")
