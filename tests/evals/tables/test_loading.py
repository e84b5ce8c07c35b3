import csv
import gzip
import json
import math
import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from cascade.pricing import PriceCard, Rates
from evals.tables import Columns, SplitRule, TableError, columns, load

ROWS = [
    {"question": "2 + 2?", "weak": 1, "strong": 1, "subject": "sums", "dear": 0.2},
    {"question": "Why?", "weak": 0, "strong": 0.5, "subject": "talk", "dear": 0.3},
]
MAPPING = columns(
    ["prompt=question", "small=weak", "large=strong", "kind=subject", "cost.large=dear"]
)


def jsonl(path, rows=ROWS):
    text = "\n".join(json.dumps(row) for row in rows) + "\n\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def as_csv(path, rows=ROWS):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def parquet(path, rows=ROWS):
    return parquet_of(path, [{**row, "weak": float(row["weak"])} for row in rows])


def parquet_of(path, rows):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(arrow.Table.from_pylist(rows), path)
    return path


def loaded(tmp_path, *rows, mapping=None, **options):
    return load(jsonl(tmp_path / "t.jsonl", rows), mapping, **options)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (jsonl, "t.jsonl"),
        (jsonl, "t.jsonl.gz"),
        (as_csv, "t.csv"),
        (parquet, "t.parquet"),
    ],
)
def test_a_table_of_each_format_is_read_alike(tmp_path, write, name):
    table = load(write(tmp_path / name), MAPPING)
    assert table.tiers == ("small", "large")
    np.testing.assert_array_equal(table.quality, [[1, 1], [0, 0.5]])
    np.testing.assert_array_equal(table.cost, [[math.nan, 0.2], [math.nan, 0.3]])
    assert table.prompts == ["2 + 2?", "Why?"]
    assert table.lengths.tolist() == [6, 4]
    assert table.kinds.tolist() == ["sums", "talk"]
    assert table.ids.tolist() == ["1", "2"]
    assert table.source == name
    assert len(table) == 2


def test_columns_that_are_called_as_ours_need_no_mapping(tmp_path):
    row = {
        "id": "a",
        "group": "g",
        "session": "s",
        "quality.m-1.5": 0.5,
        "quality.m-2": 1,
        "cost.m-2": 0.01,
        "judged.m-1.5": 0.7,
        "judge_cost.m-1.5": 0.001,
        "predicted.m-1.5": 0.4,
    }
    table = loaded(tmp_path, row)
    assert table.tiers == ("m-1.5", "m-2")
    assert (table.groups.tolist(), table.sessions.tolist()) == (["g"], ["s"])
    np.testing.assert_array_equal(table.judged, [[0.7, math.nan]])
    np.testing.assert_array_equal(table.judge_cost, [[0.001, 0]])
    np.testing.assert_array_equal(table.predicted, [[0.4, math.nan]])
    assert math.isnan(table.lengths[0])


def test_every_column_of_scores_is_a_tier_where_none_is_named(tmp_path):
    row = {"prompt": "a", "weak": 1, "strong": True, "size": 7, "note": "x"}
    table = loaded(tmp_path, row)
    assert table.tiers == ("weak", "strong")
    assert table.quality.tolist() == [[1, 1]]


def test_an_object_of_scores_is_a_tier_for_each_and_its_own_order_can_be_said(tmp_path):
    row = {"prompt": "a", "scores": {"m-1.5": 0.5, "m-2": 1}}
    assert loaded(tmp_path, row).tiers == ("m-1.5", "m-2")
    mapping = columns(["big=scores.m-2", "small=scores.m-1.5"])
    table = loaded(tmp_path, row, mapping=mapping)
    assert table.tiers == ("big", "small")
    assert table.quality.tolist() == [[1, 0.5]]


def test_tiers_that_nobody_ordered_stand_from_the_cheapest_to_the_dearest(tmp_path):
    prices = {"weak": Decimal(3), "strong": Decimal(1)}
    row = {"weak": 1, "strong": 0}
    table = loaded(tmp_path, row, prices=prices)
    assert table.tiers == ("strong", "weak")
    assert table.cost.tolist() == [[1, 3]]
    stated = columns(["weak=weak", "strong=strong"])
    assert loaded(tmp_path, row, mapping=stated, prices=prices).tiers == ("weak", "strong")


def test_tokens_are_priced_by_the_tiers_card(tmp_path):
    rates = Rates(input=Decimal(2), cache_read=Decimal("0.2"), output=Decimal(8))
    row = {
        "a": 1,
        "b": 1,
        "input.a": 1000,
        "cache_read.a": 500,
        "output.a": 100,
        "input.b": None,
        "output.b": 3,
    }
    prices = {"a": PriceCard(rates=rates), "b": PriceCard(rates=rates)}
    mapping = columns(["a=a", "b=b"])
    table = loaded(tmp_path, row, mapping=mapping, prices=prices)
    np.testing.assert_allclose(table.cost, [[0.0029, math.nan]], rtol=1e-12)


def test_a_row_for_each_answer_becomes_a_row_for_each_prompt(tmp_path):
    rows = [
        {"id": "p", "prompt": "Why?", "tier": "small", "quality": 0, "cost": 1, "kind": "talk"},
        {"id": "q", "prompt": "How?", "tier": "small", "quality": 1, "cost": 1, "kind": "talk"},
        {"id": "p", "prompt": "Why?", "tier": "large", "quality": 1, "cost": 5, "kind": "talk"},
    ]
    table = loaded(tmp_path, *rows)
    assert table.tiers == ("small", "large")
    assert table.ids.tolist() == ["p", "q"]
    np.testing.assert_array_equal(table.quality, [[0, 1], [1, math.nan]])
    np.testing.assert_array_equal(table.cost, [[1, 5], [1, math.nan]])
    assert table.kinds.tolist() == ["talk", "talk"]


def test_a_row_for_each_answer_may_call_things_otherwise(tmp_path):
    rows = [
        {"text": "Why?", "model": "m-8b", "score": 0.25},
        {"text": "Why?", "model": "m-1b", "score": 0.5},
    ]
    mapping = columns(["prompt=text", "tier=model", "quality=score", "small=m-1b", "large=m-8b"])
    table = loaded(tmp_path, *rows, mapping=mapping)
    assert table.tiers == ("small", "large")
    assert table.quality.tolist() == [[0.5, 0.25]]
    with pytest.raises(
        TableError, match=r"t\.jsonl:2: model: there is no tier 'm-2'; .* m-1b, m-8"
    ):
        loaded(tmp_path, rows[0], {**rows[1], "model": "m-2"}, mapping=mapping)
    with pytest.raises(TableError, match=r"t\.jsonl:2: tier 'large' has already answered"):
        loaded(tmp_path, rows[0], rows[0], mapping=mapping)
    with pytest.raises(TableError, match=r"t\.jsonl:2: score: must be a number from 0 to 1"):
        loaded(tmp_path, rows[0], {**rows[1], "score": "good"}, mapping=mapping)


def test_what_is_not_known_is_left_open(tmp_path):
    rows = [{"a": None, "b": 1}, {"a": "", "b": 0.5}]
    table = loaded(tmp_path, *rows, mapping=columns(["a=a", "b=b"]))
    assert np.isnan(table.quality[:, 0]).all()


def test_rows_with_one_prompt_are_one_group(tmp_path):
    rows = [{"prompt": p, "a": 1, "b": 0} for p in ("x", "y", "x")]
    groups = loaded(tmp_path, *rows).groups
    assert groups[0] == groups[2] != groups[1]


def test_conversations_are_one_text(tmp_path):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Why?"}, {"type": "image_url"}]},
    ]
    table = loaded(tmp_path, {"prompt": messages, "a": 1, "b": 0})
    assert table.prompts == ["Be brief.\nWhy?"]


def test_a_groups_rows_are_in_one_part_and_parts_have_about_their_shares(tmp_path):
    rows = [{"group": f"g{i // 2}", "a": 1, "b": 0} for i in range(4000)]
    table = loaded(tmp_path, *rows)
    assert (table.splits[::2] == table.splits[1::2]).all()
    shares = [len(table.of(part)) / len(table) for part in ("fit", "choose", "test")]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.03)
    assert (loaded(tmp_path, *rows).splits == table.splits).all()
    other = loaded(tmp_path, *rows, split=SplitRule(fit=0, choose=0.5, seed=1))
    assert set(other.splits) == {"choose", "test"}


def test_a_tables_own_split_is_kept_and_empty_ones_are_drawn(tmp_path):
    rows = [{"a": 1, "b": 0, "split": said} for said in ("train", "Calibrate", "TEST", "", None)]
    splits = loaded(tmp_path, *rows).splits.tolist()
    assert splits[:3] == ["fit", "choose", "test"]
    assert set(splits[3:]) <= {"fit", "choose", "test"}
    with pytest.raises(TableError, match=r"t\.jsonl:2: split: must be one of fit, .* not 'half'"):
        loaded(tmp_path, rows[0], {**rows[0], "split": "half"})


@pytest.mark.parametrize(
    "name", ["id", "prompt", "group", "split", "cost.a", "judged.a", "input.a"]
)
def test_a_column_that_was_named_and_is_not_there_is_missed(tmp_path, name):
    rates = Rates(input=Decimal(1), output=Decimal(1))
    with pytest.raises(TableError, match=r"t\.jsonl:1: there is no column 'x'; there are: a, b"):
        loaded(
            tmp_path,
            {"a": 1, "b": 0, "output.a": 3},
            mapping=columns([f"{name}=x", "a=a", "b=b"]),
            prices={"a": PriceCard(rates=rates)},
        )


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ({**ROWS[1], "weak": 2}, r"t\.jsonl:2: weak: must be a number from 0 to 1, not 2"),
        ({**ROWS[1], "weak": "yes"}, r"t\.jsonl:2: weak: .* not 'yes'"),
        ({**ROWS[1], "weak": float("nan")}, r"t\.jsonl:2: weak: .* not nan"),
        ({**ROWS[1], "weak": [1]}, r"t\.jsonl:2: weak: .* not \[1\]"),
        ({**ROWS[1], "dear": "much"}, r"t\.jsonl:2: dear: must be a number at least 0, not 'much'"),
        ({**ROWS[1], "dear": -1}, r"t\.jsonl:2: dear: .* not -1"),
        ({**ROWS[1], "dear": float("inf")}, r"t\.jsonl:2: dear: .* not inf"),
        ({**ROWS[1], "question": 7}, r"t\.jsonl:2: question: must be a text"),
        ({**ROWS[1], "subject": {}}, r"t\.jsonl:2: subject: must be a text, not {}"),
        ({"question": "x", "weak": 1, "subject": ""}, r"t\.jsonl:2: there is no column 'strong'"),
    ],
)
def test_a_row_at_fault_is_named_by_its_line_and_column(tmp_path, second, complaint):
    with pytest.raises(TableError, match=complaint):
        loaded(tmp_path, ROWS[0], second, mapping=MAPPING)


def test_a_score_in_parquet_that_is_no_number_is_named_by_its_row(tmp_path):
    rows = [{"weak": 1.0, "strong": 0.5}, {"weak": math.nan, "strong": 1.0}]
    mapping = columns(["small=weak", "large=strong"])
    with pytest.raises(TableError, match=r"t\.parquet: row 2: weak: must be a number .* not nan"):
        load(parquet(tmp_path / "t.parquet", rows), mapping)


def test_parquet_of_every_kind_of_column_is_read_alike(tmp_path):
    rows = [
        {"id": 1.5, "prompt": "a", "tier": "x", "quality": 0.5, "cost": 2},
        {"id": None, "prompt": "b", "tier": "x", "quality": None, "cost": None},
    ]
    long = [{**row, "id": name} for row, name in zip(rows, ("p", "q"), strict=True)]
    long += [{**row, "tier": "y"} for row in long]
    table = load(parquet_of(tmp_path / "t.parquet", long))
    np.testing.assert_array_equal(table.quality, [[0.5, 0.5], [math.nan, math.nan]])
    np.testing.assert_array_equal(table.cost, [[2, 2], [math.nan, math.nan]])
    wide = [{"id": row["id"], "a": row["quality"], "b": 1.0} for row in rows]
    with pytest.raises(TableError, match=r"t\.parquet: row 2: id: is empty"):
        load(parquet_of(tmp_path / "t.parquet", wide))
    wrong = [{"a": 0.5, "b": 1.0}, {"a": 2.0, "b": 1.0}]
    with pytest.raises(TableError, match=r"t\.parquet: row 2: a: must be .* to 1, not 2\.0"):
        load(parquet_of(tmp_path / "t.parquet", wrong), columns(["a=a", "b=b"]))


def test_an_id_that_comes_twice_is_named_with_both_lines(tmp_path):
    rows = [{"id": name, "a": 1, "b": 0} for name in ("x", "y", "x")]
    with pytest.raises(TableError, match=r"t\.jsonl:3: id: 'x' is already that of .*t\.jsonl:1"):
        loaded(tmp_path, *rows)
    with pytest.raises(TableError, match=r"t\.jsonl:2: id: is empty"):
        loaded(tmp_path, rows[0], {**rows[1], "id": ""})


def test_a_tier_that_is_not_there_is_named(tmp_path):
    row = {"a": 1, "b": 0}
    with pytest.raises(TableError, match="there is no tier 'c'; the tiers are a, b"):
        loaded(tmp_path, row, prices={"c": Decimal(1)})
    with pytest.raises(TableError, match="there is no tier 'c'"):
        loaded(tmp_path, {**row, "x": 7}, mapping=columns(["cost.c=x"]))
    with pytest.raises(TableError, match=r"cost\.c: there is no tier 'c'"):
        loaded(tmp_path, {**row, "cost.c": 1})
    scores = {"scores": {"a": 1, "b": 0}}
    with pytest.raises(TableError, match=r"t\.jsonl:2: scores: there is no tier 'c'"):
        loaded(tmp_path, scores, {"scores": {"a": 1, "b": 0, "c": 1}})
    with pytest.raises(TableError, match=r"t\.jsonl:2: there is no column 'scores\.b'"):
        loaded(tmp_path, scores, {"scores": {"a": 1}})


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t.jsonl", b'{"a": 1}\n{', r"t\.jsonl:2: not JSON"),
        ("t.jsonl", b"[1]\n", r"t\.jsonl:1: a line must be a JSON object"),
        ("t.jsonl", b"", "holds no rows"),
        ("t.jsonl", b"\xff\n", "not UTF-8"),
        ("t.jsonl.gz", b"plain", "cannot be read"),
        ("t.csv", b"a,b\n1,2,3\n", r"t\.csv:2: has not as many fields"),
        ("t.csv", b'a,b\n"1', r"t\.csv:\d: not CSV"),
        ("t.csv", b"a,b,a\n1,0,0\n", r"t\.csv:1: there are two columns 'a'"),
        ("t.jsonl", b'{"a": 1' + b"0" * 5000 + b"}\n", r"t\.jsonl:1: not JSON"),
        ("t.jsonl", b'{"a": ' + b"[" * 100_000 + b"\n", r"t\.jsonl:1: not JSON"),
        ("t.parquet", b"no", "not Parquet"),
        ("t.xlsx", b"", r"ends in \.jsonl, \.csv"),
        ("t.jsonl", b'{"prompt": "a", "b": 1}\n', "fewer than two tiers"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, name, content, complaint):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=complaint):
        load(tmp_path / name)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TableError, match="cannot be read"):
        load(tmp_path / "t.csv")


@pytest.mark.skipif("CASCADE_DATA" not in os.environ, reason="CASCADE_DATA names no folder of data")
@pytest.mark.parametrize(
    ("name", "tiers", "rows"),
    [
        ("routellm_mmlu.jsonl.gz", 2, 9608),
        ("routellm_gsm8k.jsonl.gz", 2, 917),
        ("llmrouter_9models.jsonl.gz", 9, 5608),
    ],
)
def test_published_tables_load_without_a_mapping(name, tiers, rows):
    table = load(Path(os.environ["CASCADE_DATA"]) / name, Columns())
    assert table.quality.shape == (rows, tiers)
    assert not np.isnan(table.quality).any()


def test_two_columns_of_one_name_are_refused_in_parquet_too(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    table = arrow.table([[1.0], [0.0], [1.0]], names=["a", "a", "b"])
    write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"t\.parquet: there are two columns 'a'"):
        load(tmp_path / "t.parquet")


@pytest.mark.parametrize("value", [10**400, True, "true"])
def test_what_is_no_amount_is_no_cost(tmp_path, value):
    with pytest.raises(TableError, match=r"t\.jsonl:1: cost\.a: must be a number at least 0"):
        loaded(tmp_path, {"a": 1, "b": True, "cost.a": value})


def test_a_verdict_whose_cost_is_not_said_did_not_cost_nothing(tmp_path):
    row = {"quality.a": 1, "quality.b": 1, "judged.a": 0.5, "judged.b": None, "judge_cost.b": None}
    cost = loaded(tmp_path, {**row, "judge_cost.a": None}, {**row, "judge_cost.a": 0.1}).judge_cost
    np.testing.assert_array_equal(cost, [[np.nan, 0], [0.1, 0]])
    assert not loaded(tmp_path, row).judge_cost.any()


def test_rows_without_a_part_go_where_the_rest_of_their_group_is(tmp_path):
    groups = [{"a": 1, "b": 0, "group": str(n), "split": ""} for n in range(30)]
    stated = [{**row, "split": "test"} for row in groups]
    assert set(loaded(tmp_path, *groups, *stated).splits) == {"test"}


def test_a_prompt_may_be_long_and_have_parts_without_a_text(tmp_path):
    long = "x" * 200_000
    table = load(as_csv(tmp_path / "t.csv", [{"prompt": long, "a": 1, "b": 0}]))
    assert table.prompts == [long]
    content = [{"type": "text", "text": None}, {"type": "text", "text": "Why?"}]
    table = loaded(tmp_path, {"prompt": [{"role": "user", "content": content}], "a": 1, "b": 0})
    assert table.prompts == ["Why?"]


@pytest.mark.parametrize("shares", [{"fit": math.nan}, {"choose": -0.1}, {"fit": 0.9}])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(TableError, match="no parts of all"):
        SplitRule(**shares)
