"""cascade eval frontier, as somebody calls it."""

import json

import pytest
from click.testing import CliRunner

from cascade.errors import CascadeError
from evals.commands.eval import evaluate
from evals.tables import write
from tests.evals.frontier.worlds import world

pytest.importorskip("pyarrow", reason="tables are written by pyarrow")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("frontier") / "outcomes.parquet"
    write(world(900), made)
    return made


def run(*arguments):
    given = ["frontier", *(str(each) for each in arguments), "--resamples", "20"]
    return CliRunner().invoke(evaluate, given, catch_exceptions=False)


def test_tables_are_printed_the_headroom_first(path):
    done = run(path)
    assert done.exit_code == 0, done.output
    order = ["each tier alone", "Best single", "Routing pays", "all settings", "CPT50: smallest"]
    places = [done.stdout.index(part) for part in order]
    assert places == sorted(places)


def test_machines_get_json_that_is_the_same_each_time(path):
    one, two = (run(path, "--json").stdout for _ in range(2))
    assert one == two
    told = json.loads(one)
    assert told["rows"] == {"fit": 300, "choose": 300, "test": 300}
    assert told["policies"]["random"]["metrics"]["APGR"]["value"] == 0.5


def test_pictures_and_settings_are_written_beside(path, tmp_path):
    names = {name: tmp_path / f"f.{name}" for name in ("html", "png", "csv")}
    done = run(path, *(part for name, file in names.items() for part in (f"--{name}", file)))
    assert done.exit_code == 0, done.output
    assert names["html"].read_text().startswith("<!doctype html>")
    assert names["png"].read_bytes().startswith(b"\x89PNG")
    assert names["csv"].read_text().startswith("policy,knob,")


def test_one_policy_can_be_asked_for(path):
    done = run(path, "--policy", "cascade", "--json")
    assert list(json.loads(done.stdout)["policies"]) == ["random", "cascade"]


def test_a_table_of_conversations_is_billed_with_cold_caches_where_a_price_says_so(tmp_path):
    some = world(300)
    lines = [
        {
            "prompt": some.prompts[at],
            "session": f"s{at // 3}",
            "group": f"s{at // 3}",
            "split": ("fit", "choose", "test")[at // 3 % 3],
            **{f"quality.{tier}": some.quality[at, i] for i, tier in enumerate(some.tiers)},
            **{f"cost.{tier}": some.cost[at, i] for i, tier in enumerate(some.tiers)},
        }
        for at in range(300)
    ]
    file = tmp_path / "talks.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    for price, cold in (("large=3/0.3/15", True), ("large=3/15", False)):
        told = json.loads(run(file, "--price", price, "--json").stdout)
        assert told["cold_caches"] is cold


def test_what_is_wrong_is_said_before_anything_is_written(path, tmp_path):
    with pytest.raises(CascadeError, match="there is no folder"):
        run(path, "--html", tmp_path / "none" / "f.html")
    with pytest.raises(CascadeError, match=r"must end in \.png"):
        run(path, "--png", tmp_path / "f.svg", "--html", tmp_path / "f.html")
    file = tmp_path / "bare.jsonl"
    file.write_text('{"small": 0, "large": 1}\n{"small": 1, "large": 1}\n')
    with pytest.raises(CascadeError, match=r"bare\.jsonl: nothing says what an answer of small"):
        run(file, "--html", tmp_path / "f.html")
    assert [each.name for each in tmp_path.iterdir()] == ["bare.jsonl"]
