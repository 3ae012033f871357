"""A case as a page: complete, with links that resolve, and nothing in it that could act."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.tools.conftest import Cli

EVIL = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> [go](javascript:alert(3)) "
    "![i](http://evil.example/i.png) <http://evil.example> &lt;b&gt; `<i>` \u202e\x1b[31m"
)


class Page(HTMLParser):
    """The tags, attributes, IDs and local links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")


@pytest.fixture(params=["view", "report"])
def page(request: pytest.FixtureRequest, call: Cli, desk: Path) -> str:
    return printed(call, desk, request.param, "small")


def printed(call: Cli, desk: Path, command: str, case: str) -> str:
    if command == "report":
        return call("report", case, "--format", "html").out
    target = desk / f"{case}.html"
    assert call("view", case, "-o", str(target), "--no-browser").code == 0
    return target.read_text(encoding="utf-8")


def test_every_link_resolves_on_the_page(page: str) -> None:
    found = Page(page)
    assert found.links
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))


def test_a_page_can_do_nothing_and_loads_nothing(page: str) -> None:
    found = Page(page)
    assert "default-src 'none'" in page
    assert not found.tags & {"script", "img", "iframe", "link", "form", "object", "base"}
    assert not {name for name in found.attributes if name.startswith("on")}
    assert all(link.startswith("#") for link in found.links)


@pytest.mark.parametrize("command", ["view", "report"])
def test_what_a_case_holds_is_text(command: str, call: Cli, desk: Path) -> None:
    (desk / "evil.md").write_text(f"# Total {EVIL}\n\n`cart_total` in shop/cart.py says {EVIL}\n")
    (desk / "source/shop/cart.py").write_text(f'def cart_total(x):\n    return """{EVIL}"""\n')
    assert call("analyze", "evil.md", "--source", "source", "--name", "evil").code == 0
    text = printed(call, desk, command, "evil")
    found = Page(text)
    assert "script" not in found.tags
    assert "img" not in found.tags
    assert all(link.startswith("#") for link in found.links)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_page_holds_every_event_request_and_evidence(call: Cli, desk: Path) -> None:
    text = printed(call, desk, "view", "small")
    events = call("log", "small", "--json").json["events"]
    assert text.count("<tr><td>") >= len(events)
    for event in events:
        if "evidence" in event and "characters" in event:
            assert f'id="{event["evidence"]}"' in text
        if event["topic"].startswith("request.prepared"):
            assert event["document"]["digest"][:19] in text


def test_a_page_is_never_replaced_unasked(call: Cli, desk: Path) -> None:
    target = desk / "a.html"
    target.write_text("mine")
    found = call("view", "small", "-o", str(target), "--no-browser")
    assert found.code == 2
    assert "--force" in found.err
    assert target.read_text() == "mine"
    assert call("view", "small", "-o", str(target), "--no-browser", "--force").code == 0


def test_a_package_and_a_case_without_a_diagnosis_have_a_page(call: Cli, desk: Path) -> None:
    assert "Evidence" in printed(call, desk, "view", "fresh")
    found = call("view", "small.zip", "--json")
    page = Path(found.json["page"])
    assert "Timeline" in page.read_text(encoding="utf-8")
    page.unlink()
    page.parent.rmdir()


def test_another_format_is_named_with_those_there_are(call: Cli) -> None:
    found = call("report", "small", "--format", "pdf")
    assert found.code == 2
    assert "md, json or html" in found.err
