from collections import Counter

from evals.datasets import TASKS, load
from evals.runs import quickstart
from serving.commands.options import load as load_config
from serving.commands.options import wire


def test_the_prompts_are_always_the_same_hundred_of_the_test_split():
    found = quickstart.prompts()
    assert found == quickstart.prompts()
    assert len(found) == 100
    assert {prompt.id for prompt in found} <= {prompt.id for prompt in load(TASKS, split="test")}
    fewer = {prompt.id for prompt in quickstart.prompts(6)}
    assert len(fewer) == 6
    assert fewer < {prompt.id for prompt in found}


def test_every_kind_is_in_every_part_and_no_group_is_in_two():
    found = quickstart.prompts()
    counts = Counter((prompt.kind, prompt.split) for prompt in found)
    kinds = {prompt.kind for prompt in found}
    assert len(kinds) == 6
    assert all(counts[kind, part] >= 2 for kind in kinds for part in ("fit", "choose", "test"))
    parts = {(prompt.group, prompt.split) for prompt in found}
    assert len(parts) == len({prompt.group for prompt in found})


def test_the_configuration_can_work():
    snapshot = wire(load_config(quickstart.CONFIG))
    assert list(snapshot.tiers) == ["small", "large"]
    assert quickstart.JUDGE in snapshot.judges
    assert {arm.estimator.name for arm in snapshot.arms.values()} == {quickstart.ESTIMATOR}
    assert not snapshot.warnings
