"""Every word of the page is in its catalogue, in every language."""

import re
from html.parser import HTMLParser
from importlib.resources import files
from string import Formatter

import pytest

from serving.dashboard.language import LANGUAGES, Texts, catalogue, wanted
from serving.results.clauses import ENGLISH, clause

TEMPLATES = sorted((files("serving.dashboard") / "templates").iterdir(), key=lambda f: f.name)
SOURCES = sorted(files("serving.dashboard").rglob("*.py"))
SAID = frozenset({"aria-label", "title", "placeholder", "alt", "data-title", "data-confirm"})
"""Attributes that a person reads or hears."""


def fields(text):
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each != "en"])
def test_every_language_has_the_same_texts_with_the_same_values_in_them(language):
    english, other = catalogue("en"), catalogue(language)
    assert other.keys() == english.keys()
    for key, text in english.items():
        assert fields(other[key]) == fields(text), key
        assert other[key].strip(), key


def test_a_korean_text_is_korean():
    same = {"unknown", "brand", "waterfall.warm.value", "verdict.sentence"}
    latin = [
        key
        for key, text in catalogue("ko").items()
        if key not in same and not re.search("[가-힣]", text)
    ]
    assert latin == []


def found(pattern):
    sources = [file.read_text(encoding="utf-8") for file in [*TEMPLATES, *SOURCES]]
    return {key for source in sources for key in re.findall(pattern, source)}


def test_every_text_that_is_asked_for_is_there_and_every_text_is_asked_for():
    asked = found(r"""\bt(?:exts)?\(\s*["']([\w. ]+)["'][,)]""")
    begun = found(r"""\bt(?:exts)?\(\s*f?["'](\w+\.)["'{]""")
    kinds = found(r"""named\(\s*["'](\w+)["']""") | found(r"""badge\(["'](\w+)["']""")
    kinds |= found(r"""choice\(["']\w+["'], \w+, ["'](\w+)["']""")
    known = catalogue("en").keys()
    assert asked - known == set()
    built = (*begun, *(f"{kind}." for kind in kinds), "unknown")
    assert {key for key in known - asked - ENGLISH.keys() if not key.startswith(built)} == set()


class Bare(HTMLParser):
    """Finds text that is written into a template."""

    def __init__(self):
        super().__init__()
        self.found = []
        self._within = []

    def handle_starttag(self, tag, attrs):
        if tag in {"script", "style"}:
            self._within.append(tag)
        self.found += [f"{n}={v}" for n, v in attrs if n in SAID and v and letters(v)]

    def handle_endtag(self, tag):
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data):
        if not self._within and letters(data):
            self.found.append(data.strip())


def letters(text):
    return re.search(r"[^\W\d_]", text)


def without_jinja(text):
    text = re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", "", text, flags=re.DOTALL)
    return re.sub(r"\{%.*?%\}", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_no_template_has_a_text_of_its_own(file):
    parser = Bare()
    parser.feed(without_jinja(file.read_text(encoding="utf-8")))
    assert parser.found == []


def test_a_text_in_a_template_would_be_found():
    parser = Bare()
    parser.feed(without_jinja('<p title="{{ t("a") }} of">{{ t("b") }} requests</p>'))
    assert parser.found == ["title= of", "requests"]


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_no_template_has_a_script_or_a_style_of_its_own(file):
    text = file.read_text(encoding="utf-8")
    assert " style=" not in text
    assert "<style" not in text
    assert not re.search(r"\son\w+=", text)
    for script in re.findall(r"<script[^>]*>", text):
        assert "src=" in script or 'type="application/json"' in script
    assert not re.search(r"""(?:src|href|action)=["']?(?:https?:)?//""", text)


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        (None, "", "en"),
        (None, "ko-KR,ko;q=0.9,en-US;q=0.8", "ko"),
        (None, "fr,en;q=0.5,ko;q=0.7", "ko"),
        (None, "ko;q=0,en", "en"),
        (None, "fr", "en"),
        (None, "ko;q=broken", "en"),
        ("ko", "en", "ko"),
        ("xx", "ko", "ko"),
    ],
)
def test_a_visitor_reads_the_language_that_they_chose_or_that_their_browser_asks_for(
    chosen, accepted, language
):
    assert wanted(chosen, accepted) == language


def test_a_word_of_the_log_that_has_no_text_is_shown_as_it_is():
    texts = Texts("ko")
    assert texts.named("outcome", "accepted") == "채택"
    assert texts.named("outcome", "something new") == "something new"
    assert texts.named("outcome", None) == texts("unknown")


def test_a_sentence_that_the_commands_say_is_said_in_the_visitors_language():
    margin = clause("verdict.points", points="2")
    said = clause(
        "verdict.sentence",
        costs=clause("verdict.cost.less", arm="b", percent="31", low="27", high="35"),
        quality=clause("verdict.quality.unknown"),
        so=clause("verdict.so.take", margin=margin),
    )
    assert Texts("en").told(said) == (
        "b costs 31 % less [27, 35]; quality not known yet: it costs less and is not more than 2 "
        "points worse"
    )
    assert Texts("ko").told(said) == (
        "b: 비용 31 % 적음 [27, 35]; 품질을 아직 모름: 비용이 적고, 2포인트보다 더 나쁘지 않음"
    )


def test_several_parts_of_a_sentence_are_a_list():
    arms = [clause("doubt.share", arm=arm, units="1", share="50 %") for arm in "ab"]
    said = clause("doubt.shares", p="0.001", arms=arms)
    assert (
        Texts("en")
        .told(said)
        .endswith("a 1 units for a share of 50 %, b 1 units for a share of 50 %")
    )
