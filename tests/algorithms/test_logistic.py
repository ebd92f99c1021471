"""The logistic regression finds the likeliest coefficients, also where all observations agree."""

import numpy as np
import pytest

from kg_retrievers.algorithms.logistic import LogisticPrior, fit_logistic


@pytest.mark.parametrize(("far", "rights"), [([0.1, 0.3] * 11, 22 * [1]), (40 * [0.0], 40 * [0]), ([0.2, 0.8], [1, 0])])
def test_no_other_coefficients_are_likelier(far: list[float], rights: list[int]) -> None:
    prior, rows = LogisticPrior((2.95, -6.4), (1.0, 4.0)), np.stack([np.ones(len(far)), far], 1)
    found, right = fit_logistic(rows, np.array(rights, float), prior), np.array(rights)
    grid = np.stack(np.meshgrid(np.linspace(-15, 15, 301), np.linspace(-15, 15, 301)), -1).reshape(-1, 2)
    logits = np.concatenate([found[None], grid]) @ rows.T
    lost = (np.logaddexp(0, logits) - right * logits).sum(1)
    lost += ((np.concatenate([found[None], grid]) - prior.means) ** 2 / prior.variances).sum(1) / 2
    assert lost[0] <= lost[1:].min() + 1e-6
