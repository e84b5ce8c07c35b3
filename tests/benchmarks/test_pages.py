import pytest

from benchmarks.pages import put
from evals.files import ResultFileError

PAGE = "before\n<!-- begin -->\nold\n<!-- end -->\nafter\n"
MARKS = ("<!-- begin -->", "<!-- end -->")


def test_what_was_measured_replaces_what_stood_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    put(page, *MARKS, "new")
    assert page.read_text() == PAGE.replace("old", "new")
    put(page, *MARKS, "old")
    assert page.read_text() == PAGE


@pytest.mark.parametrize("lost", MARKS)
def test_a_page_without_a_mark_is_named_and_left_as_it_is(tmp_path, lost):
    page = tmp_path / "page.md"
    text = PAGE.replace(lost, "")
    page.write_text(text)
    with pytest.raises(ResultFileError, match=f"page.md: there is no '{lost}'"):
        put(page, *MARKS, "new")
    assert page.read_text() == text


def test_an_end_before_the_beginning_is_none(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- end -->\n<!-- begin -->\nrest")
    with pytest.raises(ResultFileError, match="no '<!-- end -->' after '<!-- begin -->'"):
        put(page, *MARKS, "new")


def test_a_page_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ResultFileError, match=r"none\.md: cannot be read"):
        put(tmp_path / "none.md", *MARKS, "new")
