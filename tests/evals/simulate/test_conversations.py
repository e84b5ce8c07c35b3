"""Simulated conversations: cells, what is kept of them, how they are compared, the command."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from evals.commands.simulate import simulate
from evals.commands.simulate_conversations import LINEUPS
from evals.files import ResultFileError
from evals.panel_report import as_markdown
from evals.simulate.conversation_plot import draw
from evals.simulate.conversation_ratios import (
    RIVALS,
    alone,
    best_rivals,
    by_cell,
    chosen_elsewhere,
    summary,
)
from evals.simulate.conversation_runs import Kept, all_played, code
from evals.simulate.conversation_table import LONG, MIDDLE, closely, record, tables
from evals.simulate.conversations import (
    FACTORS,
    HELD_OUT,
    NAIVE,
    OURS,
    PRICED,
    TIERS,
    WARM_UP,
    WARM_UP_SEED,
    Cell,
    Run,
    cells,
    played,
    tenants,
    timed,
)
from evals.simulate.frontier import FRACTIONS, Point
from evals.simulate.rivals import WITHOUT_UTILITY
from evals.simulate.truth import skills
from evals.simulate.world import lineups, regimes

OWN = Cell(lineup="own-8b-70b", regime=MIDDLE)
API = Cell(lineup="haiku-sonnet-opus", regime=MIDDLE)
POLICIES = {TIERS, *WITHOUT_UTILITY, *PRICED, NAIVE, OURS}


@pytest.fixture(scope="module")
def one():
    return played(OWN, 0, 20)


def test_a_run_has_every_policy_with_every_setting(one):
    assert set(one.frontiers) == POLICIES
    for name, (_, knobs) in WITHOUT_UTILITY.items():
        assert [point.knob for point in one.frontiers[name]] == list(knobs)
    for name in (*PRICED, NAIVE, OURS):
        assert [point.knob for point in one.frontiers[name]] == list(FACTORS)


def test_the_ends_of_a_mix_are_the_tiers(one):
    tiers, mix = one.frontiers[TIERS], one.frontiers["mix"]
    assert (mix[0].quality, mix[0].dollars) == (tiers[0].quality, tiers[0].dollars)
    assert (mix[-1].quality, mix[-1].dollars) == (tiers[-1].quality, tiers[-1].dollars)


def test_what_is_learned_comes_from_a_tenant_that_does_not_count():
    lineup = lineups()[0]
    skill = skills(lineup.abilities, list(lineup.cards), 0.85)
    learned, counted = tenants(API, skill, seed=3, turns=40)
    other, _ = tenants(API, skill, seed=3 + WARM_UP_SEED, turns=40)
    assert (len(learned), len(counted)) == (WARM_UP, 40)
    assert learned[-1].at <= counted[0].at
    assert {t.conversation for t in learned}.isdisjoint(t.conversation for t in counted)
    assert [t.prompt for t in learned] != [t.prompt for t in other]
    assert WARM_UP_SEED > HELD_OUT + 100


def test_line_ups_have_tenants_of_their_own_and_a_better_judge_has_the_same():
    def prompts(cell):
        lineup = lineups()[0]
        skill = skills(lineup.abilities, list(lineup.cards), cell.auc)
        return [(t.at, t.question.seen) for t in tenants(cell, skill, seed=0, turns=40)[1]]

    assert prompts(API) != prompts(OWN)
    better, same = prompts(replace(API, auc=0.95)), prompts(API)
    assert [at for at, _ in better] == [at for at, _ in same]


def test_there_is_a_cell_for_every_line_up_and_kind_of_traffic():
    found = cells(LINEUPS)
    assert len(set(found)) == 4 * 36
    assert list(LINEUPS) == [each.name for each in lineups()]
    assert {MIDDLE, LONG} <= set(regimes())


def test_one_thing_at_a_time_is_varied_from_traffic_that_is_there_already():
    found = closely(LINEUPS)
    new = [cell for cell in found if cell not in cells(LINEUPS)]
    assert len(set(found)) == len(found)
    assert {cell.auc for cell in new} == {0.65, 0.75, 0.85, 0.95}
    assert {cell.ttl for cell in new} == {60.0, 300.0, 3600.0}
    assert {cell.regime.live for cell in new} == {1, 4, 16}
    assert all(timed(cell) for cell in new if cell.ttl != 300.0)
    for cell in new:
        base = replace(cell, auc=0.85, ttl=300.0, regime=replace(cell.regime, live=4))
        assert base in found


def kept_file(tmp_path, *runs, turns=20):
    kept = Kept(tmp_path / "kept.jsonl", turns)
    for run in runs:
        kept.add(run)
    return tmp_path / "kept.jsonl"


def test_a_finished_run_is_kept_and_not_played_again(tmp_path, one):
    path, told = kept_file(tmp_path, one), []
    found = all_played([(OWN, 0)], turns=20, workers=1, kept=Kept(path, 20), done=told.append)
    assert found == told == [one]
    assert len(path.read_text().splitlines()) == 1


def test_what_is_not_there_is_played_and_kept_in_the_order_of_the_jobs(tmp_path, one):
    path, told = kept_file(tmp_path, replace(one, seed=1)), []
    jobs = [(OWN, 0), (OWN, 1)]
    found = all_played(jobs, turns=20, workers=1, kept=Kept(path, 20), done=told.append)
    assert [run.seed for run in found] == [0, 1]
    assert found[0] == one
    assert len(told) == 2
    assert set(Kept(path, 20).runs) == set(jobs)


def test_runs_of_other_code_or_of_other_turns_are_left_alone(tmp_path, one):
    path = kept_file(tmp_path, one)
    assert Kept(path, 30).runs == {}
    path.write_text(path.read_text().replace(code(), "another"))
    assert Kept(path, 20).runs == {}
    assert path.read_text()


def test_a_line_that_was_cut_off_is_dropped_and_another_one_is_told(tmp_path, one):
    path = kept_file(tmp_path, one)
    whole = path.read_text()
    path.write_text(whole + whole[:40])
    assert set(Kept(path, 20).runs) == {(OWN, 0)}
    assert path.read_text() == whole
    path.write_text(whole + '{"seed": 1}\n')
    with pytest.raises(ResultFileError, match=r"kept\.jsonl, line 2: is no finished run"):
        Kept(path, 20)


def line(*places):
    return [
        Point(knob=i, quality=q, dollars=d, switches=0.1, premium=0.2)
        for i, (q, d) in enumerate(places)
    ]


def made(cell, seed, cost=0.9, lowest=0.4):
    """Ours costs so much where the tiers, and all rivals but one, cost 1 to 2."""
    tiers = line((0.4, 1.0), (0.8, 2.0))
    frontiers = dict.fromkeys(POLICIES, tiers)
    frontiers["cascade"] = line((0.4, 2.0), (0.8, 4.0))
    frontiers["mix"] = line((0.4, 0.99), (0.8, 1.98))
    ends = ((lowest, cost * (1.0 + (lowest - 0.4) / 0.4)), (0.8, 2.0 * cost))
    return Run(cell=cell, seed=seed, turns=20, frontiers={**frontiers, OURS: line(*ends)})


def test_a_ratio_is_against_the_best_of_its_rivals():
    (found,) = by_cell([made(API, 0)])
    assert found.ratio("naive") == pytest.approx(0.9)
    assert found.ratio("blind") == pytest.approx(0.9 / 0.99)
    assert best_rivals([found], "blind") == {"mix": 1.0}
    assert alone([found], "cascade")[0] == pytest.approx(0.45)
    assert found.outside == 0


def test_seeds_of_a_cell_are_averaged_and_drawn_again_for_its_interval():
    (found,) = by_cell([made(API, seed, cost) for seed, cost in enumerate((0.8, 1.0))])
    got = summary([found], "naive")
    assert got.mean == pytest.approx(0.9)
    half = 0.1 * 2**0.5  # of two seeds, widened
    assert got.ends == pytest.approx((0.9 - half, 0.9 + half))
    (alone_,) = by_cell([made(API, 0)])
    assert summary([alone_], "naive").ends is None


def test_a_rival_that_is_chosen_on_the_other_seeds_is_not_the_one_that_was_lucky_here():
    def lucky(seed, policy):
        run = made(API, seed)
        cheap = {policy: line((0.4, 0.5), (0.8, 1.0))}
        return replace(run, frontiers={**run.frontiers, **cheap})

    (found,) = by_cell([lucky(0, "router"), lucky(1, "cascade")])
    assert found.ratio("blind") == pytest.approx(0.9 / 0.75)  # in hindsight, of both seeds
    assert found.elsewhere["blind"] == pytest.approx([0.9 / 2.0, 0.9 / 1.0])
    assert found.elsewhere["naive"] == pytest.approx([0.9, 0.9])
    (single,) = by_cell([made(API, 0)])
    assert single.elsewhere["blind"] == []
    assert chosen_elsewhere([single], "blind") is None


SEEDS = ((0, 0.8), (1, 1.0))


def test_how_seeds_differ_says_how_sure_the_mean_against_rivals_chosen_elsewhere_is():
    found = by_cell([made(cell, seed, cost) for cell in (API, OWN) for seed, cost in SEEDS])
    got = chosen_elsewhere(found, "naive")
    assert got is not None
    assert (got.mean, got.worst) == (pytest.approx(0.9), pytest.approx(0.9))
    half = 1.96 * (2 * (2 * 0.1**2) / 2) ** 0.5 / 2  # the variance of (0.8, 1.0) is 2 * 0.1^2
    assert got.ends == pytest.approx((0.9 - half, 0.9 + half))
    assert (got.spread, got.above) == (pytest.approx(0), 0)


def test_the_worst_cell_and_the_share_of_dear_ones_are_told():
    runs = [made(API, 0), made(OWN, 0, 1.1), made(replace(OWN, auc=0.95), 0, 1.01)]
    got = summary(by_cell(runs), "naive")
    assert got.mean == pytest.approx((0.9 + 1.1 + 1.01) / 3)
    assert (got.worst, got.worst_cell) == (pytest.approx(1.1), OWN.name)
    assert got.above == pytest.approx(1 / 3)
    assert got.spread == pytest.approx(0.100, abs=0.001)


def test_qualities_below_our_least_setting_are_marked_and_stay():
    cell = replace(API, auc=0.95)
    (found,) = by_cell([made(cell, 0, lowest=0.6)])
    assert found.outside == 2  # 0.48 and 0.54 of 0.4 to 0.8
    assert all(each.ratio is not None for each in found.against["naive"])
    text = as_markdown(tables([found], [], 20))
    assert f"{API.name}, AUC 0.95 (2 of 5)" in " ".join(text.split())


def test_qualities_that_we_never_reach_are_marked_and_have_no_ratio():
    short = made(API, 0)
    short = replace(short, frontiers={**short.frontiers, OURS: line((0.4, 0.9), (0.61, 1.3725))})
    (found,) = by_cell([short])
    assert [each.ratio is None for each in found.against["naive"]] == [False] * 3 + [True] * 2
    assert found.outside == 2
    assert found.ratio("naive") == pytest.approx(0.9)


@pytest.fixture(scope="module")
def all_made():
    wanted = cells(LINEUPS)
    more = [cell for cell in closely(LINEUPS) if cell not in wanted]
    runs = [made(cell, seed, 0.9 + 0.1 * seed) for cell in (*wanted, *more) for seed in (0, 1)]
    found = by_cell(runs)
    return found[: len(wanted)], found[len(wanted) :]


def test_the_tables_tell_all_cells_line_ups_and_traffic(all_made):
    overall, elsewhere, *rest = tables(*all_made, 250)
    lineup, traffic, rivals, best, outside, varied, frontier, how = rest
    assert [len(each.rows) for each in (overall, elsewhere, lineup, traffic)] == [3, 3, 4, 10]
    assert re.match(r"0\.950 \(0\.9\d\d to 0\.9\d\d\)$", overall.rows[2][1])
    assert [row[0] for row in rivals.rows] == [*RIVALS["blind"], "naive"]
    assert len(varied.rows) == 3 + 3 + 3 + 4 + 3
    assert [cell for row in varied.rows for cell in row if not cell] == [""] * 4
    assert frontier.rows[0] == ("ours", "0", "0.400", "950.00", "10%", "20%")
    assert "mix 100%" in best
    assert outside.startswith("Every quality lay between")
    assert "Seeds 0 to 1, 250 turns" in how
    for table in (overall, lineup, traffic, rivals, varied, frontier):
        assert {len(row) for row in table.rows} == {len(table.head)}


def test_a_record_has_ratios_and_frontiers(all_made):
    told = json.loads(json.dumps(record(all_made[0][0])))
    assert (told["lineup"], told["regime"]["prefix"], told["seeds"]) == (LINEUPS[0], 1000, [0, 1])
    assert set(told["ratios"]) == set(RIVALS)
    assert len(told["against"]["blind"]) == len(FRACTIONS)
    assert set(told["frontiers"]) == POLICIES


def test_a_picture_is_drawn(tmp_path, all_made):
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    draw(tmp_path / "some.png", all_made[0], all_made[0][0])
    assert (tmp_path / "some.png").read_bytes().startswith(b"\x89PNG")


def invoke(*arguments):
    return CliRunner().invoke(simulate, ["conversations", *arguments])


def test_the_command_plays_side_by_side_and_goes_on_where_it_was(tmp_path):
    kept = tmp_path / "kept.jsonl"
    options = ("--quick", "--turns", "20", "--lineup", "own-8b-70b", "--keep", str(kept), "--json")
    done = invoke(*options, "--workers", "2")
    assert done.exit_code == 0, done.exception
    assert "own-8b-70b 2/2" in done.stderr
    told = json.loads(done.stdout)
    assert [each["regime"]["prefix"] for each in told] == [MIDDLE.prefix, LONG.prefix]
    assert told[0]["seeds"] == [HELD_OUT]
    lines = kept.read_text()
    again = invoke(*options, "--workers", "1")
    assert json.loads(again.stdout) == told
    assert kept.read_text() == lines


@pytest.mark.parametrize("option", [("--quick",), ("--lineup", "own-8b-70b")])
def test_a_page_wants_all_of_it(tmp_path, option):
    page = tmp_path / "page.md"
    page.write_text("x")
    done = invoke(*option, "--write", str(page))
    assert done.exit_code == 2
    assert "--write wants all of it" in done.stderr


def test_what_cannot_be_written_is_said_before_the_work(tmp_path):
    for option in (("--keep", str(tmp_path / "none" / "k")), ("--plot", str(tmp_path / "p.svg"))):
        done = invoke(*option)
        assert isinstance(done.exception, ResultFileError), option
