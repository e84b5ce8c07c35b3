"""A service's metrics, and what Prometheus reads of them, for tests."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from cascade.forecast import Forecast
from serving.metrics.metrics import Metrics
from tests.engines import tier


def metrics(*tiers, **options: Any) -> Metrics:
    """Of tiers small and large, unless it is told of others."""
    named = {each.name: each for each in tiers or (tier("small"), tier("large"))}
    return Metrics(Forecast(named), **options)


class Read:
    """What Prometheus's own client library reads from the text."""

    def __init__(self, text: bytes | str) -> None:
        text = text if isinstance(text, str) else text.decode()
        self.families = {each.name: each for each in text_string_to_metric_families(text)}
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value of a sample, without the prefix; None when there is none."""
        return self.samples.get((f"cascade_{name}", frozenset(labels.items())))

    def labels(self, name: str) -> set[frozenset[tuple[str, str]]]:
        """The labels under which there is such a sample."""
        return {labels for found, labels in self.samples if found == f"cascade_{name}"}


def counted(*results, **options: Any) -> Read:
    """What is told after those results."""
    made = metrics(**options)
    for each in results:
        made.note(each)
    return Read(made.told([], None))
