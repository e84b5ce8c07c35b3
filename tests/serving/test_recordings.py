"""Recordings by themselves: how long they last, and what ends them."""

import asyncio

import pytest

from serving.recordings import RecordingLimits, Recordings

START = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
NAME = ("tenant", "key")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def body(text, *, more=False):
    return {"type": "http.response.body", "body": text, "more_body": more}


def saying(*messages):
    async def work(send):
        for message in messages:
            await send(message)

    return work


def record(recordings, work, *, name=NAME, answered=True):
    return recordings.record(name, b"digest", work, lambda: answered)


async def played(recording, *, again=False):
    sent = []

    async def send(message):
        sent.append(message)

    await recording.play(send, again=again)
    return sent


async def finished(recordings, recording):
    """Its messages, once the task that makes them has ended."""
    sent = await played(recording)
    await recordings.drain(5)
    return sent


async def test_a_recording_lasts_as_long_as_it_may():
    clock = Clock()
    recordings = Recordings(RecordingLimits(seconds=60), clock)
    recording = record(recordings, saying(START, body(b"x")))
    await finished(recordings, recording)
    clock.now += 59
    assert recordings.find(NAME) is recording
    clock.now += 2
    assert recordings.find(NAME) is None


async def test_recordings_that_nobody_asks_for_are_let_go_in_time():
    clock = Clock()
    recordings = Recordings(RecordingLimits(seconds=60, bytes=5000), clock)
    await finished(recordings, record(recordings, saying(START, body(b"x"))))
    clock.now += 61
    other = record(recordings, saying(START, body(b"x" * 2900)), name=("tenant", "other"))
    await finished(recordings, other)
    assert recordings.find(("tenant", "other")) is other  # there is room, since the first is gone


async def test_an_answer_larger_than_the_limit_is_read_to_its_end_and_not_kept():
    recordings = Recordings(RecordingLimits(bytes=0))
    recording = record(recordings, saying(START, body(b"x" * 5000)))
    assert recordings.find(NAME) is recording
    assert (await finished(recordings, recording))[-1]["body"] == b"x" * 5000
    assert recordings.find(NAME) is None


@pytest.mark.parametrize(
    ("messages", "answered"),
    [
        ([{**START, "status": 500}, body(b"x")], True),
        ([START, body(b"x")], False),
    ],
    ids=["its status says so", "the audit log says so"],
)
async def test_a_failure_is_played_and_forgotten(messages, answered):
    recordings = Recordings()
    recording = record(recordings, saying(*messages), answered=answered)
    assert [each["type"] for each in await finished(recordings, recording)] == [
        "http.response.start",
        "http.response.body",
    ]
    assert recordings.find(NAME) is None


async def test_an_answer_that_is_never_whole_raises_and_is_forgotten():
    recordings = Recordings()
    recording = record(recordings, saying(START, body(b"x", more=True)))
    with pytest.raises(RuntimeError, match="broken off"):
        await played(recording)
    await recordings.drain(5)
    assert recordings.find(NAME) is None


async def test_a_bug_reaches_every_reader_and_the_log(caplog):
    async def work(send):
        await asyncio.sleep(0)
        raise KeyError("oops")

    recordings = Recordings()
    recording = record(recordings, work)
    readers = [asyncio.create_task(played(recording)) for _ in range(2)]
    for reader in readers:
        with pytest.raises(KeyError, match="oops"):
            await reader
    assert recordings.find(NAME) is None
    assert "oops" in caplog.text


async def test_a_reader_that_comes_late_gets_the_same_and_is_told():
    recordings, gate = Recordings(), asyncio.Event()

    async def work(send):
        await send(START)
        await send(body(b"one ", more=True))
        await gate.wait()
        await send(body(b"two"))

    recording = record(recordings, work)
    first = asyncio.create_task(played(recording))
    await asyncio.sleep(0)
    late = asyncio.create_task(played(recording, again=True))
    await asyncio.sleep(0)
    gate.set()
    start, *pieces = await late
    assert start["headers"] == [(b"a", b"b"), (b"x-cascade-idempotent-replay", b"true")]
    assert b"".join(piece["body"] for piece in pieces) == b"one two"
    assert [piece["more_body"] for piece in pieces][-1] is False
    assert (await first)[0] == START


async def test_what_takes_longer_than_the_drain_is_cancelled_and_waited_for(caplog):
    ended = []

    async def work(send):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    recordings = Recordings()
    record(recordings, work)
    await asyncio.sleep(0)
    await recordings.drain(0.01)
    assert ended
    assert "1 answers that nobody waited for" in caplog.text
