"""Logistic regression with normally distributed coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array

#: The most steps of Newton's method, and how often one of them is halved.
MOST_STEPS, MOST_HALVINGS = 50, 30


class LogisticPrior(NamedTuple):
    """How the coefficients are distributed.

    Attributes:
        means: Their means, (f).
        variances: Their variances, (f).
    """

    means: Sequence[float]
    variances: Sequence[float]


def fit_logistic(
    rows: Array, rights: Array, prior: LogisticPrior, *, weights: Array | float = 1.0, known: Array | float = 0.0
) -> Array:
    """Return the likeliest coefficients of a logistic regression, (f).

    Newton's method. A step is halved until the likelihood rises.

    Args:
        rows: The features of each observation, (n, f).
        rights: 1 or 0 for each, (n).
        prior: How the coefficients are distributed.
        weights: How much each observation counts, (n).
        known: A part of each logit that is given, (n).

    Example:
        >>> fit_logistic(np.ones((10, 1)), np.ones(10), LogisticPrior([0.0], [0.5])).round(1)
        array([1.2])
    """
    means, variances = np.asarray(prior.means, float), np.asarray(prior.variances, float)

    def loss(found: Array) -> float:
        logits = known + rows @ found
        lost = weights * (np.logaddexp(0, logits) - rights * logits)
        return float(lost.sum() + ((found - means) ** 2 / variances).sum() / 2)

    found = means
    for _ in range(MOST_STEPS):
        shares = 0.5 * (1 + np.tanh((known + rows @ found) / 2))
        gradient = rows.T @ (weights * (shares - rights)) + (found - means) / variances
        curvature = rows.T @ (rows * (weights * shares * (1 - shares))[:, None]) + np.diag(1 / variances)
        step, before = np.linalg.solve(curvature, gradient), loss(found)
        halves = (0.5**times for times in range(MOST_HALVINGS))
        shorter = next((found - half * step for half in halves if loss(found - half * step) < before), None)
        if shorter is None:
            break
        found = shorter
    return found
