from dataclasses import replace
from decimal import Decimal

import pytest

from evals.collecting.adopting import adopt
from evals.collecting.journal import Journal, request_hash
from evals.outcomes import Outcomes, OutcomesError, prompts_sha256
from tests.engines import card, tier
from tests.evals.outcomes import prompt
from tests.evals.rows import MANIFEST, answer

PROMPTS = [prompt("p-1"), prompt("p-2")]
TIERS = {name: tier(name, prices=card()) for name in ("small", "large")}
MODELS = {"small": "m-small", "large": "m-large"}


def outcomes(*rows, prompts=PROMPTS):
    manifest = replace(MANIFEST, prompts_sha256=prompts_sha256(prompts))
    return Outcomes(manifest=manifest, rows={row.key: row for row in rows})


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "j.jsonl") as opened:
        yield opened


def test_kept_answers_are_in_the_journal_under_what_was_asked(journal):
    kept = outcomes(answer("p-1", "small"), answer("p-2", "large", text="7"))
    assert adopt(kept, PROMPTS, TIERS, MODELS, journal) == 2
    found = journal.answer(request_hash(PROMPTS[0]), "small", "m-small")
    assert (found.text, found.dollars) == ("4", Decimal("0.000012"))
    assert found.completion().choices[0].logprobs[0]["logprob"] == -0.25
    assert journal.answer(request_hash(PROMPTS[1]), "large", "m-large").text == "7"
    assert adopt(kept, PROMPTS, TIERS, MODELS, journal) == 0


def test_answers_of_another_model_are_not_taken_over(journal):
    kept = outcomes(answer("p-1", "small"), answer("p-1", "large"))
    assert adopt(kept, PROMPTS, TIERS, {**MODELS, "large": "other"}, journal) == 1
    with pytest.raises(OutcomesError, match="of other models: small: m-small, large: m-large"):
        adopt(kept, PROMPTS, TIERS, dict.fromkeys(MODELS, "other"), journal)


def test_answers_to_other_prompts_are_refused(journal):
    kept = outcomes(answer("p-1", "small"), prompts=[prompt("p-3")])
    with pytest.raises(OutcomesError, match="to other prompts"):
        adopt(kept, PROMPTS, TIERS, MODELS, journal)
