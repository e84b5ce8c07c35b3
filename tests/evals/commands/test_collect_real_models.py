import asyncio

import pytest
from click.testing import CliRunner

from evals.__main__ import evals
from evals.compact import expanded
from evals.outcomes_lines import read
from judges.logprob import features_of
from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.home import home
from tests.real_models import SMALL

pytestmark = pytest.mark.real_models


async def test_a_real_model_is_started_asked_and_judged_by_itself(tmp_path):
    ensure(lookup(SMALL), home())
    out = tmp_path / "o.jsonl"
    options = ("--tier", f"small={SMALL}", "--only", "fact-c", "--limit", "2")
    phases = ("--phases", "answers,samples,judges")
    done = await asyncio.to_thread(
        CliRunner().invoke, evals, ["collect", str(out), *options, *phases]
    )
    assert done.exit_code == 0, done.output
    found = read(out)
    assert found.manifest.tiers["small"].sha256 == lookup(SMALL).sha256
    answers = found.answers("small")
    assert len(answers) == 2
    for answer in answers.values():
        assert features_of(expanded(answer.logprobs))["tokens"] >= 1
        assert answer.usage.output >= 1
        assert 0 < answer.first_token_seconds <= answer.seconds
    assert all(len(some) == 4 for some in found.samples("small").values())
    verdicts = found.judgements("p_true", by="small", tier="small")
    assert verdicts.keys() == answers.keys()
    assert all(one.error == "" for one in verdicts.values())
