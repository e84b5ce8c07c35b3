"""Made-up rows of outcomes for tests."""

from cascade.types import Usage
from evals.outcomes import Answer, Judgement, Manifest, ModelIdentity, Sample

MANIFEST = Manifest(
    prompts="tasks.jsonl",
    prompts_sha256="ab" * 32,
    tiers={
        "small": ModelIdentity(model="m-small", sha256="12" * 32, server="s 1"),
        "large": ModelIdentity(model="m-large"),
    },
    begun="2031-01-01T00:00:00+00:00",
    machine="x86_64, 2 cores",
    cascade="0.1.0",
)


def answer(prompt="p-1", tier="small", **fields):
    given = {
        "text": "4",
        "finish_reason": "stop",
        "usage": Usage(input=10, cache_read=0, output=1),
        "params": {"temperature": 0},
        "logprobs": [["4", -0.25, [["4", -0.25], ["5", -1.75]]]],
        "right": True,
        "seconds": 0.5,
        "first_token_seconds": 0.25,
    }
    return Answer(prompt=prompt, tier=tier, **(given | fields))


def sample(prompt="p-1", tier="small", index=0, **fields):
    given = {
        "text": "5",
        "finish_reason": "stop",
        "usage": Usage(output=1),
        "params": {"temperature": 0.8, "seed": index + 1},
        "right": False,
        "seconds": 0.5,
    }
    return Sample(prompt=prompt, tier=tier, index=index, **(given | fields))


def judgement(prompt="p-1", tier="small", judge="pointwise", by="large", **fields):
    given = {
        "asked": "ab12",
        "score": 0.75,
        "features": {"mass": 1.0},
        "reason": "said so",
        "seconds": 1.5,
    }
    return Judgement(prompt=prompt, tier=tier, judge=judge, by=by, **(given | fields))
