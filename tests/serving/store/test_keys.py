import base64

import pytest

from cascade.errors import ConfigError
from serving.store.keys import audit_keys, new_key, required_keys

FIRST, SECOND = new_key(), new_key()


def given(text):
    return audit_keys({"CASCADE_AUDIT_KEY": text})


def test_without_the_variable_there_are_no_keys():
    assert audit_keys({}) is None
    assert given(" , ") is None


def test_the_first_key_is_the_one_in_use_and_all_are_known():
    keys = given(f"{FIRST}, {SECOND}")
    assert keys.current.id == given(FIRST).current.id
    assert list(keys.known) == [given(FIRST).current.id, given(SECOND).current.id]


def test_uses_have_keys_of_their_own_and_a_name_says_nothing_of_them():
    key = given(FIRST).current
    secret = base64.urlsafe_b64decode(FIRST)
    assert len({key.encrypting, key.sealing, key.hashing, secret}) == 4
    assert repr(key) == f"AuditKey(id='{key.id}')"
    assert key.id not in key.encrypting.hex() + key.sealing.hex() + key.hashing.hex() + secret.hex()


@pytest.mark.parametrize("text", ["secret", "!!!", FIRST[:20], f"{FIRST},x", "한글"])
def test_what_is_no_key_is_refused_and_the_way_to_one_is_told(text):
    with pytest.raises(ConfigError, match=r"key [12] is not 32 bytes .* `cascade audit key`"):
        given(text)


def test_a_seal_holds_its_parts_apart():
    keys = given(FIRST)
    seal = keys.seal("ab", "c", 1)
    assert keys.sealed(seal, "ab", "c", 1)
    assert not keys.sealed(seal, "a", "bc", 1)
    assert not keys.sealed(seal, "ab", "c", 2)
    assert not keys.sealed(f"{seal}0", "ab", "c", 1)
    assert not given(SECOND).sealed(seal, "ab", "c", 1)


def test_what_needs_a_key_says_so(monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_KEY", raising=False)
    with pytest.raises(ConfigError, match="chaining the rows needs a key: set CASCADE_AUDIT_KEY"):
        required_keys("chaining the rows")
    monkeypatch.setenv("CASCADE_AUDIT_KEY", FIRST)
    assert required_keys("chaining the rows").current.id == given(FIRST).current.id
