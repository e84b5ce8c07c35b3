"""The arrays against the one request at a time that the service looks at."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.policies.outlook import Candidate, Outlook
from cascade.posterior import Unfitted
from cascade.types import Beliefs
from evals.frontier.outlook import NONE, Outlooks

NAMES = ("a", "b", "c")


@settings(max_examples=60, deadline=None)
@given(
    means=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    kappa=st.sampled_from([0.0, 0.1, 0.6, 1.0]),
    in_hand=st.floats(0.0, 0.9),
    usd=st.floats(0.01, 100.0),
)
def test_a_calls_worth_is_that_of_the_shipped_outlook(means, kappa, in_hand, usd):
    prices, judging = (0.1, 0.3, 0.9), (0.01, 0.02, None)
    beliefs = Unfitted(kappa=kappa).before(Beliefs(mean=dict(zip(NAMES, means, strict=True))))
    shipped = Outlook([*map(Candidate, NAMES, means, prices, judging)], beliefs, usd)
    allowed = {
        (choice.candidate.tier, choice.judged): choice.worth / usd
        for choice in shipped.choices(in_hand)
        if choice.judged or choice.candidate.mean >= in_hand
    }
    found = Outlooks(
        means=np.array(means)[:, None],
        prices=np.array(prices)[:, None],
        judging=np.array([0.01, 0.02, np.nan]),
        kappa=kappa,
        hold=0.0,
    ).best(np.array([0]), np.array([1.0 / usd]), np.array([in_hand]), [0, 1, 2])
    tier, judged = divmod(int(found.call[0]), 2)
    worth = found.worth.at(np.array([1.0 / usd]))[0]
    assert worth == pytest.approx(max(allowed.values()), abs=1e-9)
    assert worth == pytest.approx(allowed[NAMES[tier], bool(judged)], abs=1e-9)


def test_without_a_call_that_may_be_made_there_is_none():
    outlooks = Outlooks(
        means=np.array([[0.5]]),
        prices=np.array([[0.1]]),
        judging=np.array([np.nan]),
        kappa=0.1,
        hold=0.0,
    )
    found = outlooks.best(np.array([0]), np.array([1.0]), np.array([0.7]), [0])
    assert found.call.tolist() == [NONE]
