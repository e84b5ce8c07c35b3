from html.parser import HTMLParser

from evals.panel_report import Printed
from evals.runs.html import Code, Folded, Markup, Section, document


class Checked(HTMLParser):
    """Knows the texts by tag, and that every tag is closed in its order."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.fetched = [], {}, []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in {"src", "href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data)


PAGE = document(
    "A & B",
    [
        Section(
            "One",
            [
                "Plain <b> and [bold]marked[/].",
                Printed("a \\[title]", ["x", "y"], [["1 < 2", "\\[tag]"]]),
                Code("a: [b]\n  c"),
            ],
        ),
        Section("Two", [Markup("<em>as it is</em>"), Folded("more", ["inside"])]),
    ],
)


def test_what_is_written_for_the_screen_is_shown_as_text():
    texts = Checked(PAGE).texts
    assert texts["h1"] == ["A & B"]
    assert texts["h2"] == ["One", "Two"]
    assert texts["p"] == ["Plain <b> and marked.", "inside"]
    assert texts["caption"] == ["a [title]"]
    assert (texts["th"], texts["td"]) == (["x", "y"], ["1 < 2", "[tag]"])
    assert texts["pre"] == ["a: [b]\n  c"]
    assert texts["em"] == ["as it is"]
    assert texts["summary"] == ["more"]


def test_nothing_is_fetched():
    assert Checked(PAGE).fetched == []
