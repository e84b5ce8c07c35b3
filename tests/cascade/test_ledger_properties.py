"""The ledger against naive models of the three kinds of caches, over any sequence of calls."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledgers import BLOCK, blocks, chain, ids, slots, timed

CAPACITY = 7
TTL = 10.5

WORDS = st.text("ab", max_size=8)
SALTS = st.sampled_from(["", "x"])
PROMPTS = st.tuples(WORDS, st.integers(0, 15), SALTS)
WAITS = st.tuples(st.just("wait"), st.integers(0, 8))
CALLS = st.tuples(st.sampled_from(["ask", "begin", "end"]), PROMPTS)
REPORTS = st.tuples(st.just("report"), PROMPTS, st.none() | st.integers(0, 8))
SEQUENCES = st.lists(WAITS | CALLS | REPORTS, max_size=40)
UNREPORTED = st.lists(WAITS | CALLS, max_size=40)

often = settings(max_examples=400, deadline=None)


class Naive:
    """Each prefix by itself: when it was last used, in order and in seconds."""

    def __init__(self, *, capacity=None, ttl=None):
        self.capacity, self.ttl = capacity, ttl
        self.now, self.turn, self.share = 0, 0, 1.0
        self.used = {}
        self.asked, self.begun = {}, {}

    def known(self, word, salt):
        """The last uses of the prompt's blocks, as far as they are there without a gap."""
        found = []
        for end in range(1, len(word) + 1):
            use = self.used.get((salt, word[:end]))
            if use is None or (self.ttl is not None and self.now - use[1] > self.ttl):
                break
            found.append(use[0])
        return found

    def tokens(self, count, word, rest):
        prompt = len(word) * BLOCK + rest
        return max(min(count * BLOCK, prompt - (self.ttl is None)) // BLOCK * BLOCK, 0)

    def ask(self, prompt):
        word, rest, salt = prompt
        self.asked[prompt] = self.turn
        return int(self.tokens(len(self.known(word, salt)), word, rest) * self.share)

    def use(self, word, salt):
        self.turn += 1
        for end in range(1, len(word) + 1):
            self.used[salt, word[:end]] = (self.turn, self.now)
        while self.capacity is not None and len(self.used) > self.capacity:
            del self.used[min(self.used, key=lambda key: (self.used[key][0], -len(key[1])))]

    def begin(self, prompt):
        word, _, salt = prompt
        self.begun[prompt] = self.known(word, salt)
        self.use(word, salt)

    def end(self, prompt):
        self.use(prompt[0], prompt[2])

    def report(self, prompt, count):
        word, rest, salt = prompt
        begun = self.begun.pop(prompt, None)
        if count is None:
            return
        known = self.known(word, salt) if begun is None else begun
        expected = self.tokens(len(known), word, rest)
        asked = self.asked.get(prompt, -1)
        if self.ttl is None:
            self.evict(known, expected, count, asked)
        elif expected and (count * BLOCK >= expected or known[-1] <= asked):
            self.share += 0.05 * (min(count * BLOCK / expected, 1.0) - self.share)
        if begun is None and count:
            self.use(word[:count], salt)

    def evict(self, known, expected, count, asked):
        if count * BLOCK < expected:
            gone = [use for use in known[count:] if use <= asked]
            if gone:
                self.used = {key: use for key, use in self.used.items() if use[0] > gone[0]}


def compare(cache, model, calls):
    """Both do the calls, and agree on what is warm whenever they are asked."""
    for kind, *what in calls:
        if kind == "wait":
            cache.clock.wait(what[0])
            model.now += what[0]
            continue
        word, rest, salt = what[0]
        prompt = chain(word, tokens=len(word) * BLOCK + rest, salt=salt)
        if kind == "ask":
            assert cache.tokens(prompt) == model.ask(what[0])
        elif kind == "begin":
            cache.ledger.began("t", prompt)
            model.begin(what[0])
        elif kind == "end":
            cache.ledger.ended("t", prompt)
            model.end(what[0])
        else:
            count = None if what[1] is None else min(what[1], len(word))
            cache.reported(prompt, None if count is None else count * BLOCK)
            model.report(what[0], count)
    for word, salt in sorted({(word, salt) for salt, word in model.used}):
        prompt = chain(word, salt=salt)
        assert cache.tokens(prompt) == model.ask((word, 1, salt))


@often
@given(SEQUENCES)
def test_full_blocks_go_as_in_a_model_that_looks_at_each(calls):
    compare(blocks(capacity_tokens=CAPACITY * BLOCK), Naive(capacity=CAPACITY), calls)


@often
@given(SEQUENCES)
def test_prefixes_expire_as_in_a_model_that_looks_at_each(calls):
    compare(timed(block=BLOCK, ttl_seconds=TTL), Naive(ttl=TTL), calls)


@often
@given(UNREPORTED)
def test_an_unbounded_cache_forgets_nothing(calls):
    compare(blocks(), Naive(), calls)


class NaiveServer:
    """The rules of llama.cpp's server, a letter a token."""

    def __init__(self, count, host):
        self.slots = [{"text": "", "salt": "", "last": -1, "busy": False} for _ in range(count)]
        self.host, self.limit, self.turn = [], host, 0

    @staticmethod
    def lcp(slot, prompt):
        word, salt = prompt
        if slot["salt"] != salt:
            return 0
        shared = 0
        while word[:shared] == slot["text"][:shared] and shared <= min(
            len(word), len(slot["text"])
        ):
            shared += 1
        return shared - 1

    def begins(self, slot, prompt):
        return slot["last"] >= 0 and len(slot["text"]) == self.lcp(slot, prompt)

    def goes_on(self, slot, prompt):
        return self.begins(slot, prompt) and len(prompt[0]) > len(slot["text"])

    def slot_for(self, prompt):
        free = [s for s in self.slots if not s["busy"] or self.goes_on(s, prompt)] or self.slots
        best, chosen = 0.1 * len(prompt[0]), None
        for slot in free:
            if self.lcp(slot, prompt) > best:
                best, chosen = self.lcp(slot, prompt), slot
        if chosen is None:
            for slot in free:
                if chosen is None or slot["last"] <= chosen["last"]:
                    chosen = slot
        return chosen

    def choose(self, prompt):
        """The slot, the saved prompt that is restored into it, and what is saved by then."""
        chosen = self.slot_for(prompt)
        shared = self.lcp(chosen, prompt)
        if shared > 0.1 * len(prompt[0]) and shared >= 0.5 * len(chosen["text"]):
            return chosen, None, self.host
        host = self.saved(self.host, chosen)
        kept = shared / len(chosen["text"]) if chosen["text"] else -1
        restored = None
        for saved in host:
            found = self.lcp(saved, prompt)
            share = found / len(saved["text"])
            if share >= 0.25 and share > kept and found > shared:
                restored, kept, shared = saved, share, found
        return chosen, restored, host

    def ask(self, prompt):
        slot, restored, _ = self.choose(prompt)
        return max(min(self.lcp(restored or slot, prompt), len(prompt[0]) - 1), 0)

    def put(self, slot, prompt):
        slot.update(text=prompt[0], salt=prompt[1], last=self.turn)

    def take(self, prompt):
        self.turn += 1
        slot, restored, host = self.choose(prompt)
        self.put(slot, prompt)
        self.host = [saved for saved in host if saved is not restored]
        for other in self.slots:
            if other is not slot and not other["busy"]:
                self.host = self.saved(self.host, other)
        return slot

    def saved(self, host, slot):
        mine = (slot["text"], slot["salt"])
        if not 0 < len(mine[0]) <= self.limit:
            return host
        if any(self.lcp(saved, mine) == len(mine[0]) for saved in host):
            return host
        host = [saved for saved in host if self.lcp(saved, mine) < len(saved["text"])]
        host.append(dict(slot))
        while sum(len(saved["text"]) for saved in host) > self.limit:
            del host[0]
        return host

    def begin(self, prompt):
        self.take(prompt)["busy"] = True

    def end(self, prompt):
        working = [s for s in self.slots if s["busy"] and self.begins(s, prompt)]
        if not working:
            self.take(prompt)["busy"] = False
            return
        slot = max(working, key=lambda each: len(each["text"]))
        self.turn += 1
        self.put(slot, prompt)
        slot["busy"] = False


@often
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ask", "begin", "end"]),
            st.tuples(st.text("abc", min_size=1, max_size=14), SALTS),
        ),
        max_size=40,
    ),
    st.integers(1, 3),
    st.sampled_from([None, 12, 40]),
)
def test_slots_are_filled_as_in_a_model_of_the_server(calls, count, host):
    cache, model = slots(slots=count, capacity_tokens=host), NaiveServer(count, host or 0)
    for kind, (word, salt) in calls:
        prompt = ids(word, salt=salt)
        if kind == "ask":
            assert cache.tokens(prompt) == model.ask((word, salt))
        elif kind == "begin":
            cache.ledger.began("t", prompt)
            model.begin((word, salt))
        else:
            cache.ledger.ended("t", prompt)
            model.end((word, salt))
    for word, salt in sorted({(word, salt) for _, (word, salt) in calls}):
        assert cache.tokens(ids(word, salt=salt)) == model.ask((word, salt))
