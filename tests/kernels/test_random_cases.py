"""The random cases of ci/compare.py and the fuzzer find no difference; a few of each kind."""

import random
from collections import Counter

import pytest

import configurations


@pytest.mark.parametrize("is_spoiled", [False, True])
def test_cases(is_spoiled):
    counts = Counter()
    for number in range(220):
        choices = configurations.Choices(random.Random(f"4/{number}").randint)
        case = configurations.draw(choices)
        if is_spoiled:
            case = configurations.spoiled(case, choices)
        configurations.compare(case, counts)
    kinds = ["sequences", "plans refused"]
    kinds += [] if is_spoiled else ["pooling", "long pooling", "unpooling", "averages"]
    assert all(counts["case", kind] for kind in kinds), counts
    assert not is_spoiled or counts["refused", "attributes"]


@pytest.mark.parametrize("sort", configurations.SORTS)
def test_sorts(sort):
    counts = Counter()
    for number in range(12):
        choices = configurations.Choices(random.Random(f"5/{number}").randint)
        configurations.compare(case := configurations.draw(choices, [sort]), counts)
        configurations.compare(configurations.spoiled(case, choices), counts)
    assert configurations.configurations(counts)


def test_a_source_of_few_bits_gives_wide_numbers():
    """A fuzzer's provider of bytes knows no more than 64 bits."""
    chance = random.Random(0)

    def integer(low, high):
        assert high - low < 1 << 62
        return chance.randint(low, high)

    choices = configurations.Choices(integer)
    for low, high in ((0, 2**62), (-5, 2**70), (0, 2**200), (-(2**63), 2**63)):
        drawn = [choices.integer(low, high) for _ in range(200)]
        assert low <= min(drawn) and max(drawn) <= high
        assert max(drawn) - min(drawn) > (high - low) // 2
