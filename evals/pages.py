"""Puts what was measured into its page, between two marks, and leaves all else as it is."""

from pathlib import Path

from evals.files import ResultFileError, write_whole


def put(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between the two marks.

    Raises:
        ResultFileError: a mark is missing, or the page cannot be read or written; it is as it was.
    """
    try:
        content = page.read_text(encoding="utf-8")
    except OSError as error:
        raise ResultFileError(f"{page}: cannot be read: {error.strerror or error}") from None
    before, begins, rest = content.partition(begin)
    _, ends, after = rest.partition(end)
    for mark, is_there in ((begin, begins), (end, ends)):
        if not is_there:
            place = "" if mark == begin else f" after {begin!r}"
            raise ResultFileError(f"{page}: there is no {mark!r}{place}; put it where tables go")
    write_whole(page, f"{before}{begin}\n{text}\n{end}{after}")
