from evals.compact import compact, expanded
from judges.logprob import features_of


def entry(token, logprob, *others, raw=None):
    top = [(token, logprob), *others]
    return {
        "id": 7,
        "token": token,
        "logprob": logprob,
        "bytes": list(token.encode()) if raw is None else raw,
        "top_logprobs": [
            {"id": 7, "token": text, "logprob": value, "bytes": list(text.encode())}
            for text, value in top
        ],
    }


def test_features_of_stored_log_probabilities_are_those_of_the_reported_ones():
    reported = [entry("Pa", -0.25, ("Lo", -1.75)), entry("ris", -0.125, ("x", -3.5))]
    assert features_of(expanded(compact(reported))) == features_of(reported)


def test_they_are_kept_to_four_decimals():
    assert compact([entry("a", -0.123456)]) == [["a", -0.1235, [["a", -0.1235]]]]


def test_half_a_character_keeps_its_bytes():
    stored = compact([entry("\ufffd", -1.0, raw=[0xC3])])
    assert expanded(stored)[0]["bytes"] == [0xC3]
    assert expanded(compact([entry("\u00e9", -1.0)]))[0]["bytes"] == [0xC3, 0xA9]


def test_no_log_probabilities_stay_none():
    assert compact(None) is None
    assert expanded(None) is None
