"""A small perceptron for all tiers at once, fitted with torch and kept as plain arrays."""

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from classifiers.heads import Head, Network

Matrix = NDArray[np.float64]
BATCH = 128


class NetworkFitter:
    """One hidden layer with dropout, AdamW, a fixed number of passes.

    Args:
        log_odds: fit probabilities by their likelihood; otherwise values by least squares.
        hidden: units of the hidden layer.
        passes: over the rows.
        seed: of the weights, the order and the dropout.
    """

    head_: Head

    def __init__(
        self, *, log_odds: bool, hidden: int = 32, passes: int = 40, seed: int = 0
    ) -> None:
        self._log_odds = log_odds
        self._hidden = hidden
        self._passes = passes
        self._seed = seed

    def fit(self, x: Matrix, y: Matrix, groups: NDArray[np.str_]) -> Self:
        """All outputs together; an unknown label counts for nothing."""
        del groups
        rows = torch.tensor(x, dtype=torch.float32)
        labels = torch.tensor(np.nan_to_num(y), dtype=torch.float32)
        known = torch.tensor(~np.isnan(y), dtype=torch.float32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            model = self._trained(rows, labels, known)
        layers = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
        self.head_ = Network(
            weights=[_array(layer.weight.T) for layer in layers],
            intercepts=[_array(layer.bias) for layer in layers],
            log_odds=self._log_odds,
        )
        return self

    def predict(self, x: Matrix) -> Matrix:
        """What the head says."""
        return self.head_(x)

    def _trained(
        self, rows: torch.Tensor, labels: torch.Tensor, known: torch.Tensor
    ) -> torch.nn.Sequential:
        model = torch.nn.Sequential(
            torch.nn.Dropout(0.1),
            torch.nn.Linear(rows.shape[1], self._hidden),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(self._hidden, labels.shape[1]),
        )
        optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
        model.train()
        for _ in range(self._passes):
            order = torch.randperm(len(rows))
            for batch in (order[at : at + BATCH] for at in range(0, len(order), BATCH)):
                optimiser.zero_grad()
                loss = self._loss(model(rows[batch]), labels[batch]) * known[batch]
                mean = loss.sum() / known[batch].sum().clamp(min=1.0)
                mean.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        return model

    def _loss(self, told: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self._log_odds:
            return torch.nn.functional.binary_cross_entropy_with_logits(
                told, labels, reduction="none"
            )
        return (told - labels) ** 2


def _array(values: torch.Tensor) -> Matrix:
    return np.ascontiguousarray(values.detach().numpy().astype(np.float64))
