from serving.shadow.draw import answered, drawn, unasked
from tests.builders import attempt, escalated, failed, result


def test_a_share_of_all_ids_is_drawn():
    ids = [f"r{n}" for n in range(20_000)]
    share = sum(drawn(each, 0.05) for each in ids) / len(ids)
    assert abs(share - 0.05) < 0.006


def test_the_same_request_is_drawn_again_and_a_larger_share_has_the_smaller_one_in_it():
    ids = [f"r{n}" for n in range(2_000)]
    small = {each for each in ids if drawn(each, 0.1)}
    assert small == {each for each in ids if drawn(each, 0.1)}
    assert small < {each for each in ids if drawn(each, 0.3)}
    assert all(drawn(each, 1.0) for each in ids)


def test_another_salt_draws_other_requests():
    ids = [f"r{n}" for n in range(2_000)]
    one, other = ({each for each in ids if drawn(each, 0.1, salt)} for salt in ("", "spring"))
    assert len(one & other) < len(one) / 2


def test_a_tier_that_was_asked_is_not_asked_again_also_when_it_failed():
    assert unasked(result(), ["small", "large"], {}) == ["large"]
    assert unasked(escalated(), ["small", "large"], {}) == []
    broken = result(attempts=(failed(0), attempt(1, tier="large")))
    assert unasked(broken, ["small", "large"], {}) == []


def test_a_rule_keeps_a_tier_out():
    assert unasked(result(), ["small", "large", "huge"], {"large": "abroad"}) == ["huge"]


def test_only_an_answer_that_was_given_is_shadowed():
    assert answered(result())
    assert not answered(result(completion=None))
    assert not answered(result(cancelled=True))
