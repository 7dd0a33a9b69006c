from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.gradient.aggregate import Contribution, coefficients, weighted_lower_median
from gonka_trainer.gradient.blob import BlobIndex
from gonka_trainer.gradient.digest import LeafEntry
from gonka_trainer.types import ZERO_DIGEST

from .build import address, flat, header_of

LAYOUT = flat(10, 10)


def made(host: int, tokens: int, norm: float, weight: int = 1, good: bool = True) -> Contribution:
    """A contribution as the coefficients see it: no bytes."""
    header = replace(header_of(LAYOUT, host=host), tokens=tokens)
    index = BlobIndex(header, (LeafEntry(ZERO_DIGEST, norm * norm, 14),), LAYOUT)
    return Contribution(address(host), weight, index, b"", good)


def test_equal_norms_are_weighted_by_tokens() -> None:
    hosts = [made(0, 1, 3.0), made(1, 3, 3.0)]
    assert coefficients(hosts) == (np.float32(0.25), np.float32(0.75))


def test_norms_are_clipped_to_the_median() -> None:
    hosts = [made(0, 100, 1.0), made(1, 100, 2.0), made(2, 100, 8.0)]
    third = np.float32(100 / 300)
    assert coefficients(hosts) == (third, third, np.float32(100 * 0.25 / 300))


def test_of_two_norms_the_smaller_is_the_median() -> None:
    assert coefficients([made(0, 1, 4.0), made(1, 1, 2.0)]) == (np.float32(0.25), np.float32(0.5))


def test_the_median_is_weighted_by_roster_weight_not_by_tokens() -> None:
    light, heavy = made(0, 10**6, 1.0, weight=1), made(1, 1, 2.0, weight=2)
    assert coefficients([light, heavy])[1] == np.float32(1 / (10**6 + 1))
    assert coefficients([replace(light, weight=2), heavy])[1] == np.float32(0.5 / (10**6 + 1))


def test_who_is_not_good_or_has_no_tokens_counts_nowhere() -> None:
    """The divisor is what was really summed, and the median is over it alone."""
    hosts = [made(0, 100, 4.0), made(1, 100, 0.5, weight=9, good=False), made(2, 0, 0.25, weight=9), made(3, 300, 4.0)]
    assert coefficients(hosts) == (np.float32(0.25), 0, 0, np.float32(0.75))


@pytest.mark.parametrize("hosts", [[], [made(0, 0, 1.0)], [made(0, 5, 1.0, good=False), made(1, 0, 1.0)]])
def test_nothing_to_average_gives_zeros(hosts: list[Contribution]) -> None:
    assert coefficients(hosts) == (np.float32(0),) * len(hosts)


def test_zero_gradients_are_averaged_too() -> None:
    assert coefficients([made(0, 1, 0.0), made(1, 1, 0.0), made(2, 2, 5.0)]) == (np.float32(0.25), np.float32(0.25), 0)


def test_tokens_beyond_float64_are_added_exactly() -> None:
    hosts = [made(host, 2**53 + 1, 1.0) for host in range(4)]
    assert coefficients(hosts) == (np.float32(0.25),) * 4


def test_a_participant_contributes_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        coefficients([made(0, 1, 1.0), made(0, 2, 1.0)])


HOSTS = st.lists(
    st.tuples(st.integers(0, 2**40), st.floats(0, 2.0**60), st.integers(1, 1000), st.booleans()), min_size=1, max_size=6
)


@given(HOSTS)
def test_order_does_not_matter_and_shares_add_up_to_one_at_most(values: list[tuple[int, float, int, bool]]) -> None:
    hosts = [made(i, *value) for i, value in enumerate(values)]
    factors = coefficients(hosts)
    by_host = {host.participant: factor for host, factor in zip(hosts, factors, strict=True)}
    for order in list(permutations(hosts))[:24]:
        assert coefficients(order) == tuple(by_host[host.participant] for host in order)
    assert all(0 <= factor <= 1 for factor in factors)
    assert float(np.sum(np.array(factors, np.float64))) <= 1 + 1e-6
    assert any(factors) == any(host.tokens for host in hosts)
    for factor, host in zip(factors, hosts, strict=True):
        assert host.tokens or factor == 0


@given(st.lists(st.tuples(st.floats(0, 1e9), st.integers(1, 100)), min_size=1, max_size=9))
def test_the_lower_median_is_the_smallest_with_half_of_the_weight(pairs: list[tuple[float, int]]) -> None:
    median = weighted_lower_median(pairs)
    total = sum(weight for _, weight in pairs)
    assert 2 * sum(weight for value, weight in pairs if value <= median) >= total
    assert 2 * sum(weight for value, weight in pairs if value < median) < total


def test_there_is_no_median_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        weighted_lower_median([])
