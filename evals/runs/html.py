"""A self-contained page of sentences, tables and plots: nothing is fetched when it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from rich.text import Text

from evals.panel_report import Printed

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { line-height: 1.2; }
h2 { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 1.5rem; }
table { border-collapse: collapse; display: block; font-size: .9rem; margin: 1rem 0;
  overflow-x: auto; }
caption { font-weight: 600; padding: .3rem 0; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .8rem .3rem 0; text-align: left;
  vertical-align: top; }
td { font-variant-numeric: tabular-nums; white-space: pre-line; }
pre { background: var(--soft); overflow-x: auto; padding: .8rem; white-space: pre-wrap; }
summary { cursor: pointer; }
"""


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that goes into the page as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text in lines that stay as they are, such as YAML or an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Parts that are shown when somebody asks for them."""

    summary: str
    parts: Sequence["Part"]


Part = Printed | str | Markup | Code | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    parts: Sequence[Part]


def document(title: str, sections: Sequence[Section], head: str = "") -> str:
    """The whole page.

    Args:
        title: its heading.
        sections: in order.
        head: HTML for the head, such as the scripts of plots.
    """
    body = "\n".join(
        f"<section>\n<h2>{escape(section.title)}</h2>\n{_parts(section.parts)}\n</section>"
        for section in sections
    )
    return (
        "<!doctype html>\n"
        f'<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n{head}\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _parts(parts: Sequence[Part]) -> str:
    return "\n".join(map(_part, parts))


def _part(part: Part) -> str:
    match part:
        case Markup(text):
            return text
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Folded(summary, parts):
            return f"<details><summary>{escape(summary)}</summary>\n{_parts(parts)}\n</details>"
        case Printed(title, head, rows):
            cells = "".join(f"<th>{_cell(name)}</th>" for name in head)
            lines = "\n".join(
                f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows
            )
            return (
                f"<table>\n<caption>{_cell(title)}</caption>\n<thead><tr>{cells}</tr></thead>\n"
                f"<tbody>\n{lines}\n</tbody>\n</table>"
            )
    return f"<p>{_cell(part)}</p>"


def _cell(text: str) -> str:
    """A text that is written for the screen, without the marks of its colours."""
    return escape(Text.from_markup(text).plain)
