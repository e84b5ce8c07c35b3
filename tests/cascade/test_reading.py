"""What tiers would read of a request: their own tokens where these can be told, text elsewhere."""

import asyncio
import threading
from dataclasses import replace

import pytest

from cascade.caches import CacheCard
from cascade.prefix import Fingerprints, chain_of_ids, chain_of_text, rendering
from cascade.protocols import Tokenizer
from cascade.reading import AT_ONCE_BYTES, Reader, answered
from cascade.types import ChatRequest, Choice, Completion, Usage
from tests.engines import tier

SYSTEM = {"role": "system", "content": "You are a careful clerk. " * 40}
ASK = {"role": "user", "content": "What is the price of the third item on the list?"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
BLOCKS = CacheCard(kind="blocks", block=16)
SLOTS = CacheCard(kind="slots")


class Letters(Tokenizer):
    """A token is a letter; what it was asked for is kept."""

    def __init__(self, *, down=False):
        self.down = down
        self.seen = []

    async def count(self, request):
        return None

    async def ids(self, request):
        self.seen.append(request)
        return None if self.down else [ord(c) for m in request.messages for c in m["content"]]

    async def text_ids(self, text):
        return None if self.down else [ord(c) for c in text]


def asked(*messages, **values):
    return ChatRequest(id="r", messages=messages or (SYSTEM, ASK), **values)


async def read(request, *tiers, reader=None, counted=("t",)):
    return await (reader or Reader()).read(request, tiers, counted=counted)


async def test_a_tier_whose_tokenizer_tells_has_a_chain_of_its_tokens():
    made = tier("t", tokenizer=Letters(), cache=BLOCKS)
    reading = await read(asked(), made)
    ids = [ord(c) for m in (SYSTEM, ASK) for c in m["content"]]
    assert reading.prompts["t"].chain == chain_of_ids(ids, block=16)
    assert reading.counted == {"t": len(ids)}


async def test_of_slots_the_elements_are_the_tokens_themselves():
    chain = (await read(asked(), tier("t", tokenizer=Letters(), cache=SLOTS))).prompts["t"].chain
    assert (chain.width, chain.block, chain.blocks) == (4, 1, chain.tokens)


@pytest.mark.parametrize("tokenizer", [None, Letters(down=True)])
async def test_where_tokens_are_not_told_the_chain_is_of_the_text(tokenizer):
    reading = await read(asked(), tier("t", tokenizer=tokenizer, cache=BLOCKS))
    assert reading.prompts["t"].chain == chain_of_text(rendering(asked()), tokens_per_byte=0.25)
    assert reading.counted == {}


async def test_a_tokenizer_that_need_not_be_asked_is_not():
    tokenizer = Letters()
    reading = await read(asked(), tier("t", tokenizer=tokenizer, cache=BLOCKS), counted=())
    assert not tokenizer.seen
    assert not reading.prompts["t"].chain.exact


async def test_chains_of_text_and_of_tokens_share_nothing_whichever_block_they_have():
    exact = (await read(asked(), tier("t", tokenizer=Letters(), cache=BLOCKS))).prompts["t"].chain
    text = (await read(asked(), tier("t", cache=BLOCKS))).prompts["t"].chain
    assert (exact.width, exact.block) == (text.width, text.block)
    assert exact.shared_blocks(text) == text.shared_blocks(exact) == 0


async def test_the_tokenizer_gets_what_the_tier_would_get():
    tokenizer = Letters()
    marked = asked({**ASK, "cache_control": {"type": "ephemeral"}})
    await read(marked, tier("t", tokenizer=tokenizer, cache=BLOCKS, accepts=frozenset()))
    assert tokenizer.seen[0].messages == [ASK]


async def test_the_salt_is_the_tenant_where_the_tier_keeps_them_apart_and_only_there():
    tiers = (
        tier("apart", cache=BLOCKS, salted=True),
        tier("exact", cache=BLOCKS, salted=True, tokenizer=Letters()),
        tier("all", cache=BLOCKS),
    )
    reading = await read(asked(tenant="acme"), *tiers, counted=("exact",))
    salts = {name: prompt.chain.salt for name, prompt in reading.prompts.items()}
    assert salts == {"apart": "acme", "exact": "acme", "all": ""}
    other = await read(asked(tenant="other"), *tiers, counted=("exact",))
    shared = {
        name: prompt.chain.shared_blocks(other.prompts[name].chain)
        for name, prompt in reading.prompts.items()
    }
    assert (shared["apart"], shared["exact"]) == (0, 0)
    assert shared["all"] == reading.prompts["all"].chain.blocks


async def test_each_tier_has_its_own_tokens_a_byte():
    reader, tiers = Reader(), (tier("a"), tier("b"))
    prompt = (await read(asked(), *tiers, reader=reader)).prompts["a"]
    for _ in range(50):
        reader.learn(prompt, Usage(input=prompt.rendered_bytes // 2, output=1))
    prompts = (await read(asked(), *tiers, reader=reader)).prompts
    size = len(rendering(asked()))
    assert prompts["a"].chain.tokens == pytest.approx(size / 2, rel=0.02)
    assert prompts["b"].chain.tokens == round(size / 4)
    assert prompts["a"].chain.shared_blocks(prompt.chain) == prompt.chain.blocks


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "text", "text": "See:"}, IMAGE]},
        {"role": "tool", "content": [{"type": "tool_result", "content": [IMAGE]}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]},
    ],
)
async def test_a_prompt_with_media_says_nothing_of_tokens_a_byte(message):
    reader = Reader()
    prompt = (await read(asked(message), tier("t"), reader=reader)).prompts["t"]
    reader.learn(prompt, Usage(input=100_000, output=1))
    again = (await read(asked(), tier("t"), reader=reader)).prompts["t"]
    assert again.chain.tokens == round(len(rendering(asked())) / 4)


async def test_a_usage_that_was_not_reported_says_nothing_either():
    reader = Reader()
    prompt = (await read(asked(), tier("t"), reader=reader)).prompts["t"]
    reader.learn(prompt, Usage(output=1))
    assert (await read(asked(), tier("t"), reader=reader)).prompts["t"] == prompt


async def test_the_stable_part_is_what_comes_before_the_conversation():
    prompt = (await read(asked(), tier("t"))).prompts["t"]
    share = len(rendering(asked(SYSTEM))) / len(rendering(asked()))
    assert prompt.stable_tokens == pytest.approx(share * prompt.chain.tokens, abs=1)
    assert (await read(asked(ASK), tier("t"))).prompts["t"].stable_tokens == 0
    assert (await read(asked(SYSTEM), tier("t"))).prompts["t"].stable_tokens == pytest.approx(
        len(rendering(asked(SYSTEM))) / 4, abs=1
    )


async def test_conversations_with_the_same_beginning_have_the_same_stable_part_and_tenants_none():
    one = await read(asked(SYSTEM, ASK), tier("t"))
    two = await read(asked(SYSTEM, {"role": "user", "content": "Hello"}), tier("t"))
    other = await read(asked(SYSTEM, ASK, tenant="other"), tier("t"))
    assert one.stable == two.stable != other.stable
    assert (await read(asked(ASK), tier("t"))).stable == ""


async def test_a_request_that_no_tier_can_read_is_still_in_the_log():
    reading = await read(asked())
    assert reading.prompts == {}
    assert [segment.name for segment in reading.fingerprint.segments] == ["system", "suffix"]


async def test_an_empty_request_is_read():
    reading = await read(ChatRequest(id="r", messages=[]), tier("t"))
    assert reading.prompts["t"].chain.tokens == reading.prompts["t"].stable_tokens == 0


class Threads(str):
    """A tenant that notes in which threads it was made bytes of."""

    __slots__ = ("seen",)

    def encode(self, *args, **kwargs):
        self.seen.add(threading.current_thread())
        return super().encode(*args, **kwargs)


@pytest.mark.parametrize("size", [AT_ONCE_BYTES // 2, AT_ONCE_BYTES * 2])
async def test_a_long_prompt_is_worked_on_in_a_thread_and_a_short_one_at_once(size):
    tenant = Threads("acme")
    tenant.seen = set()
    long = asked({"role": "user", "content": "x" * size}, tenant=tenant)
    await read(long, tier("t", cache=BLOCKS, salted=True))
    here = tenant.seen == {threading.current_thread()}
    assert here == (size < AT_ONCE_BYTES)


class Seen(str):
    """An image's address that knows in which threads it was taken apart."""

    __slots__ = ("seen",)

    def find(self, *args):
        self.seen.add(threading.current_thread())
        return super().find(*args)


async def test_the_bytes_of_an_image_are_never_hashed_where_others_wait():
    address = Seen(IMAGE["image_url"]["url"])
    address.seen = set()
    image = {"type": "image_url", "image_url": {"url": address}}
    await read(asked({"role": "user", "content": [image]}), tier("t"))
    assert address.seen
    assert threading.current_thread() not in address.seen


async def test_many_long_prompts_at_the_same_time_are_read_as_each_alone():
    reader = Reader()
    reader._fingerprints = Fingerprints(max_remembered=3)  # noqa: SLF001 - so that much is dropped
    many = [
        asked(*({"role": "user", "content": f"{n % 4} {m} " * 2000} for m in range(4)))
        for n in range(12)
    ]
    found = await asyncio.gather(*(read(each, tier("t"), reader=reader) for each in many))
    alone = [await read(each, tier("t")) for each in many]
    assert found == alone


async def test_of_a_chain_of_tokens_the_answers_tokens_follow():
    made = tier("t", tokenizer=Letters(), cache=SLOTS)
    prompt = (await read(asked(ASK), made)).prompts["t"]
    chain = await answered(prompt, made, Completion(choices=[Choice(text="four")]))
    ids = [ord(c) for c in ASK["content"] + "four"]
    assert chain == chain_of_ids(ids, block=1)


@pytest.mark.parametrize(("finish_reason", "read"), [("stop", "four"), ("length", "fou")])
async def test_a_model_has_not_read_the_last_token_of_an_answer_that_was_cut_off(
    finish_reason, read
):
    made = tier("t", tokenizer=Letters(), cache=SLOTS)
    prompt = (await Reader().read(asked(ASK), [made], counted=["t"])).prompts["t"]
    said = Completion(choices=[Choice(text="four", finish_reason=finish_reason)])
    chain = await answered(prompt, made, said)
    assert chain == chain_of_ids([ord(c) for c in ASK["content"] + read], block=1)


def entries(*pieces):
    return [{"id": number, "bytes": list(text.encode())} for number, text in pieces]


@pytest.mark.parametrize(
    ("logprobs", "written"),
    [
        (entries((7, "fo"), (8, "ur"), (2, "")), [7, 8]),
        (entries((7, "fo")), None),
        (entries((7, "fo"), (None, "ur")), None),
        ([{"token": "four", "bytes": None}], None),
    ],
    ids=["all of it", "a part of it", "an id is missing", "no ids"],
)
async def test_tokens_that_the_model_says_it_wrote_are_taken_before_those_of_the_text(
    logprobs, written
):
    made = tier("t", tokenizer=Letters(), cache=SLOTS)
    prompt = (await read(asked(ASK), made)).prompts["t"]
    choice = Choice(text="four", finish_reason="stop", logprobs=logprobs)
    chain = await answered(prompt, made, Completion(choices=[choice]))
    ids = [ord(c) for c in ASK["content"]] + (written or [ord(c) for c in "four"])
    assert chain == chain_of_ids(ids, block=1)


async def test_of_a_chain_of_text_the_answer_follows_as_the_next_turn_will_have_it():
    made = tier("t")
    prompt = (await read(asked(ASK), made)).prompts["t"]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = Completion(choices=[Choice(text="four", tool_calls=[call])])
    back = {"role": "assistant", "content": "four", "tool_calls": [call]}
    chain = await answered(prompt, made, said)
    assert chain == (await read(asked(ASK, back), made)).prompts["t"].chain


async def test_an_answer_whose_tokens_cannot_be_told_has_no_chain():
    made = tier("t", tokenizer=Letters(), cache=SLOTS)
    prompt = (await read(asked(ASK), made)).prompts["t"]
    called = Completion(choices=[Choice(text="four", tool_calls=[{"id": "c"}])])
    assert await answered(prompt, made, called) is None
    assert await answered(prompt, made, Completion(choices=[Choice(text="")])) is None
    down = replace(made, tokenizer=Letters(down=True))
    assert await answered(prompt, down, Completion(choices=[Choice(text="four")])) is None
