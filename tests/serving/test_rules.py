import pytest

from cascade.engine import CascadeEngine
from cascade.errors import ConfigError
from cascade.types import ChatRequest
from serving.config import ConfigFile
from serving.wiring import Wiring
from tests.engines import MemorySink

CONFIG = """\
tiers:
  here: {backend: scripted, answers: ["from here"]}
  abroad: {backend: scripted, answers: ["from abroad"]}
policies:
  out: {type: fixed, tier: abroad, fallback: [here]}
rules:
  - when: request.tenant == "clinic" || request.ask.matches("(?i)patient")
    reason: patients' data stays here
    remove: [abroad]
"""


def snapshot(folder, text=CONFIG):
    path = folder / "cascade.yaml"
    path.write_text(text)
    file = ConfigFile(path)
    try:
        return Wiring(file.config, folder).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


async def answered(folder, text="hello", model="out", **fields):
    made = snapshot(folder)
    request = ChatRequest(id="r", messages=[{"role": "user", "content": text}], **fields)
    return await CascadeEngine(made, MemorySink()).run(request, made.arm(model, ""))


async def test_a_request_that_a_rule_concerns_stays_away_from_the_tier(tmp_path):
    for asked in ({"tenant": "clinic"}, {"text": "About the PATIENT in room 4"}):
        result = await answered(tmp_path, **asked)
        assert result.completion.text == "from here"
        assert "abroad is ruled out: patients' data stays here" in result.attempts[0].reason


async def test_any_other_request_goes_where_its_policy_wants(tmp_path):
    assert (await answered(tmp_path)).completion.text == "from abroad"


async def test_asking_for_the_tier_by_name_does_not_get_round_a_rule(tmp_path):
    result = await answered(tmp_path, model="abroad", tenant="clinic")
    assert result.completion is None
    assert (result.error.status, result.error.code) == (400, "no_tier_fits")
    assert "patients' data stays here" in result.error.message


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("remove: [abroad]", "remove: [mars]"), r":9: rules\.0\.remove: there is no tier 'mars'"),
        (("remove: [abroad]", "only: [here]\n    remove: [abroad]"), "either remove or only"),
        (("request.tenant ==", "request.tennant =="), r":7: rules\.0\.when: .*tennant"),
        (("    reason: patients' data stays here\n", ""), r":7: rules\.0\.reason"),
    ],
)
def test_a_rule_that_cannot_work_names_its_line(tmp_path, change, complaint):
    with pytest.raises(ConfigError, match=complaint):
        snapshot(tmp_path, CONFIG.replace(*change))
