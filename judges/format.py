"""Checks that cost nothing and are hardly ever wrong about what they check.

An answer that was cut, is empty, refuses, loops, or does not fit the JSON Schema or the tools of
its own request is not acceptable, whatever a model thinks of it: score 0, final. An answer that
passes is only well formed, so its score of 1 says nothing about being right, and is not final.
"""

from cascade.errors import ConfigError
from cascade.tiers.requirements import answer_limit
from cascade.types import ChatRequest, Completion, Json, Verdict
from judges.language import FEWEST_LETTERS, NAMES, asked_language, foreign
from judges.speech import refusal, repetition
from judges.structure import miscalled, misshapen

SHORT_LIMIT_TOKENS = 16


class FormatJudge:
    """Finished, no refusal, no loop, JSON as asked for, tool calls that fit, in the asked language.

    Args:
        name: how verdicts call it.
        short_limit_tokens: an answer cut by the client's own limit is still whole when that limit
            is no larger than this: asking for one label with max_tokens 1 ends every answer so.
        refusals: whether a short answer that begins by refusing is a fault.
        repetition: whether an answer that loops is one.
        language: what answers must be in ("de"); "asked" goes by what the request says in so many
            words ("answer in German"); null does not look.
    """

    free = True

    def __init__(
        self,
        *,
        name: str = "format",
        short_limit_tokens: int = SHORT_LIMIT_TOKENS,
        refusals: bool = True,
        repetition: bool = True,
        language: str | None = "asked",
    ) -> None:
        if language not in {None, "asked", *NAMES.values()}:
            known = ", ".join(sorted(NAMES.values()))
            raise ConfigError(f"{language!r} is neither asked nor one of {known}", param="language")
        self.name = name
        self.needs: Json = {}
        self._short_limit_tokens = short_limit_tokens
        self._refusals = refusals
        self._repetition = repetition
        self._language = language

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """0 and final with the first fault found, otherwise 1.

        Raises:
            JudgeError: the request's own JSON Schema cannot be used.
        """
        fault = (
            self._unfinished(request, completion)
            or misshapen(request, completion)
            or miscalled(request, completion)
            or self._misspoken(request, completion)
        )
        if fault:
            return Verdict(
                judge=self.name, score=0.0, final=True, reason=fault, features={"well_formed": 0.0}
            )
        return Verdict(
            judge=self.name, score=1.0, reason="well formed", features={"well_formed": 1.0}
        )

    def _unfinished(self, request: ChatRequest, completion: Completion) -> str | None:
        reason = completion.finish_reason
        if completion.partial or reason is None:
            return "the answer was cut"
        if reason == "content_filter":
            return "the answer was filtered"
        if reason == "length" and not self._meant_to_be_short(request):
            return "the answer was cut by a length limit"
        refused = self._refusals and completion.choices[0].extra.get("refusal")
        if refused:
            return "the answer is a refusal"
        if not completion.text.strip() and not completion.tool_calls:
            return "the answer is empty"
        return None

    def _misspoken(self, request: ChatRequest, completion: Completion) -> str | None:
        text = completion.text
        form = (request.params.get("response_format") or {}).get("type")
        if not text.strip() or completion.tool_calls or form in {"json_object", "json_schema"}:
            return None
        if self._refusals and (fault := refusal(text)):
            return fault
        if self._repetition and (fault := repetition(text)):
            return fault
        if len(text) < FEWEST_LETTERS:  # too short to tell, so the prompt need not be searched
            return None
        language = asked_language(request) if self._language == "asked" else self._language
        return foreign(text, language) if language else None

    def _meant_to_be_short(self, request: ChatRequest) -> bool:
        limit = answer_limit(request)
        return limit is not None and limit <= self._short_limit_tokens
