"""A strict reader of report pages, over the standard library's parser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "input", "br", "hr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def find(self, tag: str, kind: str | None = None) -> list[Node]:
        """Find all nodes of a tag (and class) below this one, in order."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                if child.tag == tag and (kind is None or kind in child.attributes.get("class", "").split()):
                    found.append(child)
                found += child.find(tag, kind)
        return found


class Page(HTMLParser):
    """A strict reader: every element is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert len(self._open) == 1, f"left open: {[n.tag for n in self._open[1:]]}"

    def handle_starttag(self, tag, attributes):
        assert len({k for k, _ in attributes}) == len(attributes), f"an attribute twice in {tag}"
        node = Node(tag, {k: v or "" for k, v in attributes})
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_endtag(self, tag):
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data):
        self._open[-1].children.append(data)

    def all(self) -> list[Node]:
        def walk(node):
            for child in node.children:
                if isinstance(child, Node):
                    yield child
                    yield from walk(child)

        return list(walk(self.root))


def check_page(text: str) -> Page:
    """Check a page: well formed, self-contained, accessible."""
    page = Page(text)
    nodes = page.all()
    for node in nodes:
        for name in ("src", "href", "action", "poster", "srcset", "data", "xlink:href"):
            if name in node.attributes:
                assert node.attributes[name].startswith(("data:", "#")), node.attributes[name][:80]
        assert not any(k.startswith("on") for k in node.attributes), node.tag
        if node.tag == "img":
            assert node.attributes["alt"].strip()
    # neither data nor what a page is said about can fetch anything; the rest must not name an address
    code = re.sub(r'<script type="(application/json|text/plain)".*?</script>', "", text, flags=re.DOTALL)
    code = re.sub(r"base64,[A-Za-z0-9+/=]*", "", code)
    assert not re.search(r"https?:|(?<![a-z])url\(|@import|//[a-z]", code.lower())
    for node in nodes:
        if node.tag == "script":
            assert node.attributes.get("type", "") in ("", "application/json", "text/plain")
            assert "src" not in node.attributes
    ids = [n.attributes["id"] for n in nodes if "id" in n.attributes]
    assert len(set(ids)) == len(ids)
    for node in nodes:
        for name in ("href", "aria-labelledby"):
            if (target := node.attributes.get(name, "")) and not target.startswith("data:"):
                assert target.lstrip("#") in ids
    (html,) = page.root.find("html")
    assert html.attributes["lang"]
    assert len(page.root.find("h1")) == len(page.root.find("main")) == 1
    return page
