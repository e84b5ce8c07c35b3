import json
from operator import itemgetter

import pytest

from cascade.errors import ConfigError
from cascade.posterior import load
from cascade.posterior.artifact import content_of, parse
from tests.cascade.posterior.made import content, one_set


def changed(path, value):
    """The content with one place changed; a value of None takes it out."""
    found = content()
    *steps, last = path
    place = found
    for step in steps:
        place = itemgetter(step)(place)
    if value is None:
        del place[last]
    else:
        place[last] = value
    return found


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(content()))
    model = load(path)
    assert content_of(model) == content()


def test_the_digest_tells_what_can_change_a_belief(tmp_path):
    digest = parse(content()).digest
    assert parse(changed(["manifest", "metrics"], {"n": 1})).digest == digest
    assert parse(changed(["sets", 0, "heads", "small", "intercept"], 0.6)).digest != digest


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (["kind"], "panel_model", '"kind" is not "posterior_model"'),
        (["manifest"], None, "manifest: is missing"),
        (["manifest", "models"], {}, "manifest.models: there must be at least one tier"),
        (["manifest", "rates"], {"small": 0.5}, "manifest.rates: names other tiers"),
        (["manifest", "rates", "small"], 1.5, r"rates.small: must lie in \[0, 1\], not 1.5"),
        (["manifest", "judges", "huge"], {}, "manifest.judges: 'huge' is not in manifest.models"),
        (["manifest", "estimator", "name"], None, "manifest.estimator.name: is missing"),
        (["sets"], {}, "sets: must be a list"),
        (["sets", 0], 3, "sets.0: must be an object"),
        (["sets", 1, "tried"], [["small"]], r"sets.1.tried: \['small'\] is not in"),
        (["sets", 1, "heads", "large"], None, "sets.1.heads: must have one of each tier"),
        (
            ["sets", 1, "heads", "large", "rule"],
            "guess",
            "sets.1.heads.large.rule: must be one of prior, verdict, logistic, not 'guess'",
        ),
        (
            ["sets", 1, "heads", "large", "inputs", 0, "weight"],
            "1",
            "sets.1.heads.large.inputs.0.weight: must be a finite number, not '1'",
        ),
        (["sets", 0, "kappas", 0, "kappa"], -0.1, r"sets.0.kappas.0.kappa: must lie in \[0, 1\]"),
        (["sets", 0, "kappas", 1, "kappa"], 1.1, r"sets.0.kappas.1.kappa: must lie in \[-1, 1\]"),
        (["sets", 0], one_set(["large"], {}, {}), "sets.0.heads: must have one of each tier"),
    ],
)
def test_a_damaged_artifact_is_refused_with_the_field_at_fault(path, value, complaint):
    with pytest.raises(ConfigError, match=complaint):
        parse(changed(path, value))


def test_every_set_of_judged_tiers_must_be_there():
    found = content()
    found["sets"][1]["tried"] = ["small", "large"]
    with pytest.raises(ConfigError, match=r"sets: there is none for \[large\]"):
        parse(found)
    found["sets"] = found["sets"][1:]
    with pytest.raises(ConfigError, match=r"sets: there is none for \[\]"):
        parse(found)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "p.json: no such artifact; `cascade train posterior` makes one"),
        ("{", "p.json: not JSON"),
        ("[]", 'p.json: "kind" is not'),
    ],
)
def test_a_file_that_is_no_artifact_is_refused_by_name(tmp_path, text, complaint):
    path = tmp_path / "p.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        load(path)
