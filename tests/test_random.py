"""The random numbers of Python, pinned: the engine must draw the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pondertree.random import ANSWER, GUMBEL, MASK, NOISE, PLAYOUT, SELECT, Random, fold, mix, tree_key

words = st.integers(0, MASK)


def test_random_numbers_are_pinned() -> None:
    # The tests of core/src/runtime/random.rs hold the first three.
    assert tree_key(0, 0, 0) == 0x79933B9DF3D7C2C7
    assert tree_key(7, 1, 2) == 0x62EB4218392A9D3F
    assert Random(tree_key(7, 1, 2), SELECT).next_u64() == 0x1A4A2DFAA92A6D07
    random = Random(1, PLAYOUT)
    assert [random.next_u64() for _ in range(2)] == [0x481C920D996FCE04, 0x45755BBDE008FE9B]
    assert [random.below(7) for _ in range(10)] == [5, 5, 3, 6, 5, 3, 1, 0, 5, 2]
    assert random.uniform() == 0.09317787315717041


def test_purposes_do_not_share_numbers() -> None:
    assert len({Random(5, purpose).next_u64() for purpose in (SELECT, PLAYOUT, ANSWER, NOISE, GUMBEL)}) == 5


def test_key_folding_does_not_commute() -> None:
    assert tree_key(1, 2, 3) != tree_key(2, 1, 3)
    assert tree_key(1, 0, 0) != tree_key(0, 1, 0)
    assert tree_key(0, 0, 1) != tree_key(0, 1, 0)


@given(words, words)
def test_keys_and_numbers_stay_in_64_bits(key: int, word: int) -> None:
    assert 0 <= mix(key) <= MASK
    assert 0 <= fold(key, word) <= MASK
    assert 0 <= Random(key, SELECT).next_u64() <= MASK
    assert 0.0 <= Random(key, SELECT).uniform() < 1.0


def test_negative_seed_equals_its_64_bits() -> None:
    assert tree_key(-1, 0, 0) == tree_key(MASK, 0, 0)


@given(words, st.integers(1, 1000))
def test_below_is_in_range(key: int, n: int) -> None:
    assert 0 <= Random(key, SELECT).below(n) < n


def test_below_is_uniform() -> None:
    random = Random(1, PLAYOUT)
    seen = [0] * 7
    for _ in range(7000):
        seen[random.below(7)] += 1
    assert all(800 <= count < 1200 for count in seen), seen


def test_choice_among_one_draws_nothing() -> None:
    random = Random(3, SELECT)
    before = random.state
    assert random.choose(1) == 0
    assert random.state == before
    assert random.choose(2) in (0, 1)
    assert random.state != before
