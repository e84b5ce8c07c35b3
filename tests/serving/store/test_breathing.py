from collections.abc import Iterator

from serving.store.breathing import breathing


def test_every_row_comes_once_and_in_order() -> None:
    assert list(breathing(range(100))) == list(range(100))


def test_rows_are_taken_one_at_a_time() -> None:
    taken = []

    def rows() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    first = next(breathing(rows()))
    assert (first, taken) == (0, [0])
