import re

import pytest

from cascade.errors import ConfigError
from serving.models.catalogue import CATALOGUE, Model, Parts, lookup


def test_a_model_is_found_by_its_key():
    assert lookup("qwen2.5-coder-1.5b").size_bytes == 1_117_320_768


def test_an_unknown_key_is_refused_and_the_known_ones_are_named():
    with pytest.raises(ConfigError, match=r"'gpt-9'.*qwen2\.5-coder-0\.5b, qwen2\.5-coder-1\.5b"):
        lookup("gpt-9")


@pytest.mark.parametrize("model", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_model_is_pinned_and_free_to_use(model: Model):
    assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)
    assert model.licence == "Apache-2.0"
    assert model.file.endswith(".gguf")


def test_parts_are_named_as_their_wheels_are():
    parts = Parts(package="some-model-part", version="0.2.0", count=22)
    assert parts.requirement(7) == "some-model-part7==0.2.0"
    assert parts.member(7) == "some_model_part7/data/part07.bin"
    assert parts.member(22) == "some_model_part22/data/part22.bin"
