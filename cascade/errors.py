"""Every error Cascade raises on purpose.

    CascadeError                      has an HTTP status and a machine-readable code
    ├── ConfigError                   the configuration cannot work; says where
    ├── RequestError                  400: the client must change the request; names the field
    │   ├── UnknownModelError         404: no experiment, policy or tier of that name
    │   ├── RequestTooLargeError      413: the body is larger than the service takes
    │   ├── RequestTimeoutError       408: the body did not come in
    │   ├── MediaTypeError            415: the body is said to be something else than JSON
    │   ├── NoFitError                400: no tier can serve it; says what each one lacks
    │   └── BudgetError               400: what it may cost or take is too little for any call
    ├── DeadlineError                 504: the time that the client gave it is over
    ├── NoAnswerError                 every model that was asked failed
    ├── StreamBrokenError             502: the model failed after text had been released
    ├── EstimatorError                the estimator could not estimate; the prior is used
    ├── JudgeError                    the judge could not judge; never an acceptance
    ├── AuditError                    503: the audit database cannot be used
    └── BackendError                  a model could not be asked or did not answer
        ├── BackendConnectionError    503: the connection broke; retry helps
        │   └── BackendUnreachableError   nobody listens; retry helps
        ├── BackendTimeoutError       504: retry helps
        ├── BackendOverloadedError    429: retry helps, after retry_after seconds
        │   └── BackendBusyError          our own limit is reached; a retry does not help
        ├── BackendCoolingDownError   503: not asked, it failed too often just now
        ├── BackendServerError        502: retry helps
        ├── BackendProtocolError      502: what came back is no answer; retry helps
        │   └── BackendToolCallError      the model calls a tool in a way that cannot be carried out
        ├── BackendRefusedError       400: the model refused the request; retrying does not help
        ├── BackendAuthError          500: our credentials are wrong; retrying does not help
        └── BackendSetupError         500: our address or model name is wrong; the same

`evals` adds its own below CascadeError. A bug (TypeError, KeyError) is none of these and is not
caught as one.
"""

import math
from typing import ClassVar

from cascade.types import FREE, Cost


class CascadeError(Exception):
    """Base of the tree.

    Attributes:
        status: HTTP status the client gets.
        code: short name for machines.
        param: the request field at fault, if one is.
        retry_after: seconds after which the client may try again; None when nobody said.
    """

    status: int = 500
    code: ClassVar[str] = "internal_error"

    def __init__(
        self, message: str, *, param: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        # It is read from upstream headers, where it may be anything that is a number.
        sane = retry_after is not None and 0 <= retry_after < math.inf
        self.retry_after = retry_after if sane else None


class ConfigError(CascadeError):
    """The configuration cannot work."""

    code = "invalid_configuration"


class RequestError(CascadeError):
    """The client must change the request."""

    status = 400
    code = "invalid_request"


class UnknownModelError(RequestError):
    """No experiment, policy or tier has that name."""

    status = 404
    code = "model_not_found"


class RequestTooLargeError(RequestError):
    """The body is larger than the service takes."""

    status = 413
    code = "request_too_large"


class RequestTimeoutError(RequestError):
    """The body stopped coming in before it was whole."""

    status = 408
    code = "request_timeout"


class MediaTypeError(RequestError):
    """The headers say that the body is something else than JSON."""

    status = 415
    code = "unsupported_media_type"


class NoFitError(RequestError):
    """No tier that the model name stands for can serve the request."""

    code = "no_tier_fits"


class BudgetError(RequestError):
    """What the request may cost or take is too little for any call."""

    code = "budget_too_small"


class DeadlineError(CascadeError):
    """The time that the client gave the request is over."""

    status = 504
    code = "deadline_exceeded"


class NoAnswerError(CascadeError):
    """Every model that was asked failed; the status is that of the last failure."""

    code = "no_answer"

    def __init__(
        self, message: str, *, status: int = 503, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.status = status


class StreamBrokenError(CascadeError):
    """The model failed after some of its text had been released."""

    status = 502
    code = "stream_broken"


class EstimatorError(CascadeError):
    """The estimator could not estimate.

    Attributes:
        cost: what it spent; None when that is not known.
        estimated: the cost is what a call that did not end is expected to have used.
    """

    code = "estimator_failed"

    def __init__(self, message: str, *, cost: Cost | None = FREE, estimated: bool = False) -> None:
        super().__init__(message)
        self.cost = cost
        self.estimated = estimated


class JudgeError(CascadeError):
    """The judge could not judge; cost is what it spent, None when that is not known."""

    code = "judge_failed"

    def __init__(self, message: str, *, cost: Cost | None = None) -> None:
        super().__init__(message)
        self.cost = cost


class AuditError(CascadeError):
    """The audit database cannot be used."""

    status = 503
    code = "audit_unavailable"


class BackendError(CascadeError):
    """A model could not be asked or did not answer.

    Attributes:
        retryable: asking again may help.
        may_have_cost: the model may have worked, and be billed, before it failed.
        tries: how often the model was asked until this error.
        unreported_tries: of the tries before the last, those that may have been billed.
        queued_seconds: how long the last try waited for its turn; None when it did not.
    """

    status = 502
    code = "upstream_error"
    retryable: ClassVar[bool] = False
    may_have_cost: bool = False
    tries: int = 1
    unreported_tries: int = 0
    queued_seconds: float | None = None


class BackendConnectionError(BackendError):
    """The connection to the model's server broke."""

    status = 503
    code = "upstream_connection"
    retryable = True
    may_have_cost = True


class BackendUnreachableError(BackendConnectionError):
    """No connection to the model's server came about."""

    code = "upstream_unreachable"
    may_have_cost = False


class BackendTimeoutError(BackendError):
    """The model took longer than it may."""

    status = 504
    code = "upstream_timeout"
    retryable = True
    may_have_cost = True


class BackendOverloadedError(BackendError):
    """The model's server turns requests away for now."""

    status = 429
    code = "upstream_overloaded"
    retryable = True


class BackendBusyError(BackendOverloadedError):
    """As many calls as we allow are in flight and waiting; the queue was the wait."""

    code = "queue_full"
    retryable = False


class BackendCoolingDownError(BackendError):
    """The model's server failed too often just now and is left alone for a while."""

    status = 503
    code = "upstream_cooling_down"


class BackendServerError(BackendError):
    """The model's server failed."""

    retryable = True


class BackendProtocolError(BackendError):
    """What came back cannot be read as an answer."""

    code = "upstream_protocol"
    retryable = True
    may_have_cost = True


class BackendToolCallError(BackendProtocolError):
    """The model calls a tool that the request does not have, or with arguments that are no JSON."""

    code = "invalid_tool_call"


class BackendRefusedError(BackendError):
    """The model's server says that the request is wrong."""

    status = 400
    code = "upstream_refused"


class BackendAuthError(BackendError):
    """Our credentials are not accepted: the operator's to mend, not the client's."""

    status = 500
    code = "upstream_credentials"


class BackendSetupError(BackendError):
    """The server has nothing of that name there: the operator's to mend, not the client's."""

    status = 500
    code = "upstream_setup"
