"""What is probed: a request that has one thing more than another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Body = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table.

    Attributes:
        name: the field, or in words what is sent.
        adds: body fields that carry it; they replace fields of the same name.
        beside: body fields that it makes no sense without; they are in both requests.
        bound: content of one provider, which a tier must say that it accepts.
        servers: a field of open models' servers, one of many with the same fate.
    """

    name: str
    adds: Body
    beside: Body = field(default_factory=dict)
    bound: bool = False
    servers: bool = False


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One API, the smallest body that it takes, and what is added to that.

    Attributes:
        client_fields: every field that the official client knows.
        own: fields that Cascade answers itself, so that no model needs to see them.
    """

    path: str
    title: str
    body: Body
    cases: tuple[Case, ...]
    client_fields: frozenset[str]
    own: frozenset[str]


def one_each(samples: Body, *, bound: frozenset[str] = frozenset()) -> list[Case]:
    """A case a field, with a value of it."""
    return [
        Case(name=name, adds={name: value}, bound=name in bound) for name, value in samples.items()
    ]


MARK = "mark"
"""A string with this in it must not get lost on the way."""

EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
PICTURE = "iVBORw0KGgo="
OBJECT = {"type": "object", "properties": {"mark": {"type": "string"}}}

SERVER_FIELDS: Body = {
    "add_generation_prompt": False,
    "add_special_tokens": True,
    "allowed_token_ids": [5],
    "bad_words": ["mark"],
    "cache_salt": "mark",
    "chat_template": "mark",
    "chat_template_kwargs": {"mark": True},
    "continue_final_message": True,
    "documents": [{"text": "mark"}],
    "ec_transfer_params": {"mark": 1},
    "echo": True,
    "guided_json": OBJECT,
    "ignore_eos": True,
    "include_reasoning": False,
    "include_stop_str_in_output": True,
    "kv_transfer_params": {"mark": 1},
    "length_penalty": 1.5,
    "logprob_token_ids": [5],
    "media_io_kwargs": {"mark": {"mark": 1}},
    "min_p": 0.1,
    "min_tokens": 3,
    "mm_payload": {"mark": 1},
    "mm_processor_kwargs": {"mark": 1},
    "priority": 5,
    "prompt_logprobs": 1,
    "repetition_detection": {"mark": 1},
    "repetition_penalty": 1.1,
    "request_id": "mark",
    "return_mm_kwargs": True,
    "return_prompt_text": True,
    "return_token_ids": True,
    "return_token_offsets": True,
    "return_tokens_as_token_ids": True,
    "routed_experts_prompt_start": 1,
    "session_id": "mark",
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "stop_token_ids": [5],
    "stream_interval": 2,
    "structured_outputs": {"choice": ["mark"]},
    "thinking_token_budget": 5,
    "top_k": 5,
    "truncate_prompt_tokens": 50,
    "truncation_side": "left",
    "use_beam_search": True,
    "vllm_xargs": {"mark": 1},
    "watermarking": {"mark": 1},
    "unheard_of": "mark",
}
"""Fields of vLLM and other servers of open models, and one of nobody's."""


def server_cases(taken: Body) -> list[Case]:
    """A case a field of open servers, but for those that the API itself has."""
    return [
        Case(name=name, adds={name: value}, servers=True)
        for name, value in SERVER_FIELDS.items()
        if name not in taken
    ]
