from benchmarks.frontier import BEGIN, END, PAGE, measured


def test_ten_policies_are_swept_and_timed():
    found = measured(400, resamples=5)
    assert found["policies"] == 10
    assert found["settings"] > 400
    assert found["seconds"] > 0.0
    assert found["mebibytes"] > 1.0


def test_the_page_has_a_place_for_the_table():
    page = PAGE.read_text(encoding="utf-8")
    assert page.index(BEGIN) < page.index(END)
