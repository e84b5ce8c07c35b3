"""The measurements as tables of Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from benchmarks.routing_quality.scores import COLUMNS

Record = Mapping[str, Any]

TITLES: Final = {
    "mmlu": "MMLU, five-fold",
    "without": "MMLU, five-fold, with a part of the inputs left out",
    "unseen": "MMLU, subjects never seen (five-fold over subjects, nine or ten left out at a time)",
    "few": "MMLU, 1,500 labels, the other rows tested",
    "transfer": "Another domain: fitted on one table, tested on the other",
    "gsm8k": "GSM8K, five-fold, before the call",
    "nine": "Nine models: the best q - λc of each row",
}
HEADERS: Final = ("APGR", "CPT50", "CPT80", "AUC weak wrong", "AUC gain", "Brier", "ECE")


def tables(records: Sequence[Record]) -> str:
    """All sections that were measured, from the records of jobs and baselines."""
    lines: list[str] = []
    for section, title in TITLES.items():
        some = [each for each in records if each["section"] == section]
        if some:
            lines += ["", f"### {title}", ""]
            lines += list(_nine(records) if section == "nine" else _two(some, records))
    return "\n".join(lines[1:])


def _two(some: Sequence[Record], records: Sequence[Record]) -> list[str]:
    used = {each["table"] for each in some} if some[0]["section"] in ("mmlu", "gsm8k") else set()
    based = [each for each in records if each["section"] == "baselines" and each["table"] in used]
    lines = [f"| fitted, by | n | {' | '.join(HEADERS)} | 95 % interval of APGR |"]
    lines.append("|---" * (len(HEADERS) + 3) + "|")
    for name, same in _grouped([*based, *some]):
        cells = [_spread([each[key] for each in same if key in each]) for key in COLUMNS]
        lines.append(f"| {name} | {same[0]['n']:,} | {' | '.join(cells)} | {_interval(same)} |")
    return [*lines, *_leads(some)]


def _leads(some: Sequence[Record]) -> Iterator[str]:
    found = [each for each in some if "lead" in each]
    if found:
        yield ""
    for each in found:
        low, high = each["lead"]
        yield (
            f"{_name(each)}: APGR more than the length of the text alone by {low:+.3f} to "
            f"{high:+.3f} (95 %, rows drawn in pairs, seed 0)."
        )


def _nine(records: Sequence[Record]) -> list[str]:
    some = [each for each in records if each["table"] == "nine"]
    prices = list(some[0]["prices"])
    columns = [f"λ = {p}: score | cost | gap closed" for p in prices]
    lines = [f"| fitted | {' | '.join(columns)} | 95 % interval of the gap closed at λ = 0 |"]
    lines.append("|---" * (3 * len(prices) + 2) + "|")
    for name, same in _grouped(some):
        cells = [
            _spread([each["prices"][price][key] for each in same])
            for price in prices
            for key in ("score", "cost", "closed")
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {_interval(same)} |")
    return lines


def _grouped(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Records that differ by their seed alone, in order of their first."""
    found: dict[str, list[Record]] = {}
    for each in records:
        found.setdefault(_name(each), []).append(each)
    yield from found.items()


def _name(record: Record) -> str:
    if record["section"] == "baselines":
        several = record["table"] in ("gsm8k", "regraded")
        return f"*{record['head']}*{', ' + record['table'] if several else ''}"
    name = f"{record['head']}, {record['target']}"
    if record["section"] == "without":
        return f"{name}, without {record['without']}"
    if record["section"] == "transfer":
        return f"{name}: {record['table']} to {record['tested']}"
    return f"{name}, {record['table']}" if record["section"] == "gsm8k" else name


def _spread(values: Sequence[float]) -> str:
    """Mean and, of several seeds, how far the furthest is from it."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return ""
    mean = fmean(known)
    if len(known) == 1:
        return f"{mean:.3f}"
    return f"{mean:.3f} ±{max(abs(value - mean) for value in known):.3f}"


def _interval(same: Sequence[Record]) -> str:
    found = [each["interval"] for each in same if "interval" in each]
    return f"{found[0][0]:.3f} to {found[0][1]:.3f}" if found else ""
