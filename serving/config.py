"""Reads cascade.yaml and refuses what cannot work, naming file, line and key.

The shape is checked here; whether the named things fit together is checked by `wiring`, which
builds them. Both report a dotted path, and the line of that path is looked up in the file.
"""

import hashlib
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import yaml
from pydantic import (
    Field,
    ValidationError,
)

from cascade.errors import ConfigError
from serving.experiment_config import Experiment, Layer, Name
from serving.tier_config import FORMS, FROM_MAP, MapPrice, Open, Strict, Tier

DEFAULT_FILE = "cascade.yaml"


class Idempotency(Strict):
    """How long, and in how much memory, an answer is kept for repetitions of its request."""

    hours: float = Field(default=24.0, gt=0)
    mib: int = Field(default=64, ge=0)


class Tracing(Strict):
    """Where the spans of requests are sent, by OTLP over HTTP.

    Attributes:
        endpoint: the collector's address, path included.
        headers_env: names of headers that are sent along, such as authorization, each with the
            variable of the environment that holds its value.
        sample: share of the requests that are told of, where the client has not decided.
        service: the name they are told under.
    """

    endpoint: str = Field(default="http://127.0.0.1:4318/v1/traces", pattern=r"^https?://[^/]")
    headers_env: dict[str, str] = Field(default_factory=dict)
    sample: float = Field(default=1.0, ge=0, le=1)
    service: str = Field(default="cascade", min_length=1)


class Server(Strict):
    """Where the service listens, what it takes, and whether it tells how it is doing.

    Attributes:
        dashboard: whether there is a page at /dashboard, where its extra is installed.
        tracing: none: no spans are made.
    """

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    max_body_bytes: int = Field(default=32 * 1024 * 1024, gt=0)
    metrics: bool = True
    dashboard: bool = True
    idempotency: Idempotency = Idempotency()
    tracing: Tracing | None = None


class Embedder(Open):
    """An embedding model; other keys go to its constructor.

    Attributes:
        most: texts that go through together.
        waiting: texts that may wait for that.
        cache_mib: memory for the vectors of texts seen before.
    """

    type: str
    most: int = Field(default=16, ge=1)
    waiting: int = Field(default=1024, ge=1)
    cache_mib: float = Field(default=32.0, ge=0)


class Estimator(Open):
    """A difficulty estimator; other keys go to its constructor.

    Attributes:
        embedder: name of the embedder whose vectors it looks at.
    """

    type: str
    embedder: str | None = None


class Judge(Open):
    """A judge; other keys are its own.

    Attributes:
        members: names of the judges that it asks.
        of: name of the judge whose verdict it looks at.
        embedder: name of the embedder that it compares texts with.
        calibration: a fitted map of its score.
    """

    type: str
    members: list[str] | None = None
    of: str | None = None
    embedder: str | None = None
    calibration: Path | None = None


class Policy(Open):
    """A routing policy; other keys go to its constructor.

    Attributes:
        estimator: name of what says before any call which tier will do.
        posterior: file of what `cascade train posterior` fitted.
        prior: P(a tier's answer is acceptable) where there is no estimate.
    """

    type: str
    estimator: str | None = None
    posterior: str | None = None
    prior: dict[Name, Annotated[float, Field(ge=0.0, le=1.0)]] = Field(default_factory=dict)


class Rule(Strict):
    """Tiers that a request must not go to, told before any call.

    Attributes:
        when: a condition on the request.
        reason: what the audit log and the client are told.
        remove: the tiers it must not go to.
        only: the tiers that are left to it; one of the two.
    """

    when: str
    reason: str
    remove: list[Name] | None = None
    only: list[Name] | None = None


class Shadow(Strict):
    """Which requests are answered once more, by tiers that were not asked, when nobody waits.

    Attributes:
        share: of all requests, drawn by a hash of their id.
        tiers: that may be asked; "all" of them.
        judges: who look at these answers, and at those that the clients got.
        usd_per_day: dollars that all of this may cost from midnight (UTC) to midnight.
        concurrency: how many requests are worked on at once.
        waiting: how many more may wait for that; further ones are left out.
        idle: the tiers that are asked only while no client waits for an answer, one call at a time:
            those that Cascade launches, as they share a machine with everything else, all or none.
        idle_seconds: how long a request waits for such a moment before it is left out.
        salt: another one draws other requests.
    """

    share: float = Field(gt=0, le=1)
    tiers: list[Name] | Literal["all"] = "all"
    judges: list[Name] = Field(default_factory=list)
    usd_per_day: Decimal = Field(gt=0)
    concurrency: int = Field(default=2, ge=1)
    waiting: int = Field(default=100, ge=1)
    idle: Literal["launched", "all", "none"] = "launched"
    idle_seconds: float = Field(default=300.0, gt=0)
    salt: str = ""


class Audit(Strict):
    """Where the audit log is kept, and what of it. CASCADE_AUDIT_URL overrides the url.

    Attributes:
        embeddings: keep those of what was classified, so that `cascade train --from-audit` needs no
            prompt text. About a kilobyte a request; much of a text can be guessed from its
            embedding.
        prompts: what is kept of the texts of requests and answers: none; a hash that finds equal
            prompts; redacted, without what identifies people; full, encrypted with a key from the
            environment.
        retention_days: how long rows are kept; none: for ever.
        chain: chain the rows with a key from the environment, so that a change shows.
    """

    url: str = "sqlite:///cascade.db"
    spill: Path | None = None
    spill_max_bytes: int = Field(default=1024**3, gt=0)
    flush_seconds: float = Field(default=0.2, gt=0)
    embeddings: bool = False
    prompts: Literal["none", "hash", "redacted", "full"] = "hash"
    retention_days: float | None = Field(default=None, gt=0)
    chain: bool = False


class Alerts(Strict):
    """Who is told of what somebody should look at.

    Attributes:
        webhook: an address that takes alerts as JSON by POST; without one they are kept and logged.
        webhook_env: the variable of the environment that holds the address, if it has a secret.
        every_seconds: between two looks at the audit log.
        repeat_hours: after which what goes on is told again.
    """

    webhook: str | None = Field(default=None, pattern=r"^https?://[^/]")
    webhook_env: str | None = None
    every_seconds: float = Field(default=60.0, gt=0)
    repeat_hours: float = Field(default=24.0, gt=0)


_BESIDE = {"server", "audit", "shadow", "alerts"}
"""What decides nothing and prices nothing."""


class Config(Strict):
    """The whole file."""

    server: Server = Server()
    tiers: dict[Name, Tier] = Field(min_length=1)
    embedders: dict[Name, Embedder] = Field(default_factory=dict)
    estimators: dict[Name, Estimator] = Field(default_factory=dict)
    judges: dict[Name, Judge] = Field(default_factory=dict)
    policies: dict[Name, Policy] = Field(default_factory=dict)
    layers: dict[Name, Layer] = Field(default_factory=dict)
    experiments: dict[Name, Experiment] = Field(default_factory=dict)
    rules: list[Rule] = Field(default_factory=list)
    shadow: Shadow | None = None
    alerts: Alerts | None = None
    audit: Audit = Audit()

    @property
    def priced_by_map(self) -> list[str]:
        """Tiers whose prices are not in the file, and may change without it."""
        known = [(name, tier.price) for name, tier in self.tiers.items()]
        return [name for name, price in known if price == FROM_MAP or isinstance(price, MapPrice)]

    def version(self, fitted: Any = None) -> str:
        """Hash of everything that can change a decision or a price, fitted artifacts included."""
        parts = [self.model_dump(mode="json", exclude=_BESIDE), fitted]
        return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


class ConfigFile:
    """A configuration and the file it came from, so that an error can name the line.

    Raises:
        ConfigError: on construction, when the file is missing or is not a valid configuration.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, int] = {}
        self.config = self._parse(self._read())

    @property
    def audit_url(self) -> str:
        """The audit database; a relative SQLite file lies beside the configuration."""
        url = self.config.audit.url
        file = url.removeprefix("sqlite:///")
        if file == url or file.startswith("/"):
            return url
        return f"sqlite:///{self.path.absolute().parent / file}"

    def explain(self, error: ConfigError) -> ConfigError:
        """The error with file and line in front, if its path is in the file."""
        where = f"{self.path}"
        if error.param:
            where += f":{self._line(error.param)}: {error.param}"
        return ConfigError(f"{where}: {error.message}", param=error.param)

    def _read(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ConfigError(
                f"{self.path}: no such file. Name one with --config, or run in a folder with a "
                f"{DEFAULT_FILE}"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path}: cannot be read: {error}") from None

    def _parse(self, text: str) -> Config:
        try:
            tree = yaml.compose(text, Loader=yaml.SafeLoader)
            self._lines = dict(_lines(tree)) if tree else {}
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{self.path}: not YAML: {error}") from None
        if not isinstance(data, dict):
            raise ConfigError(f"{self.path}: a configuration is a mapping with at least `tiers`")
        if url := os.environ.get("CASCADE_AUDIT_URL"):
            data = {**data, "audit": {**(data.get("audit") or {}), "url": url}}
        try:
            return Config.model_validate(data)
        except ValidationError as error:
            raise self._first(error) from None

    def _first(self, error: ValidationError) -> ConfigError:
        """The first fault; the rest would only repeat it in other words."""
        fault = error.errors(include_url=False)[0]
        path = ".".join(str(step) for step in fault["loc"] if step not in FORMS)
        message = "unknown key" if fault["type"] == "extra_forbidden" else fault["msg"]
        return self.explain(ConfigError(message.removeprefix("Value error, "), param=path))

    def _line(self, path: str) -> int:
        """The line of a dotted path, or of the nearest parent that is in the file."""
        while path and path not in self._lines:
            path = path.rpartition(".")[0]
        return self._lines.get(path, 1)


def find(given: Path | None) -> Path:
    """The configuration to use: the one given, CASCADE_CONFIG, or ./cascade.yaml."""
    return given or Path(os.environ.get("CASCADE_CONFIG") or DEFAULT_FILE)


def _lines(node: yaml.Node, path: str = "") -> Iterator[tuple[str, int]]:
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else str(key.value)
            yield below, key.start_mark.line + 1
            for inner, line in _lines(value, below):
                if inner != below:
                    yield inner, line
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield from _lines(value, f"{path}.{i}")
