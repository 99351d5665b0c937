# SPDX-License-Identifier: BSD-3-Clause
"""The checker finds what the other tests look for."""
from checker import Checker, value_of


def written(*keys):
    checker = Checker()
    for key in keys:
        checker.next_value(key)
        checker.stored(key)
    return checker


def test_an_overwritten_value_is_wrong():
    checker = written("a", "a")
    checker.read("a", value_of("a", 1))
    assert len(checker.wrong) == 1


def test_a_deleted_value_is_wrong():
    checker = written("a")
    checker.deleted("a")
    checker.read("a", value_of("a", 1))
    assert len(checker.wrong) == 1


def test_another_keys_value_is_wrong():
    checker = written("a", "b")
    checker.read("a", value_of("b", 1))
    assert len(checker.wrong) == 1


def test_a_damaged_value_is_wrong():
    checker = written("a")
    checker.read("a", value_of("a", 1)[:-1] + "w")
    assert len(checker.wrong) == 1


def test_a_value_never_written_is_wrong():
    checker = Checker()
    checker.read("a", value_of("a", 1))
    assert len(checker.wrong) == 1


def test_a_miss_and_the_last_value_are_right():
    checker = written("a", "a")
    checker.read("a", None)
    checker.read("a", value_of("a", 2))
    assert (checker.wrong, checker.hits, checker.misses) == ([], 1, 1)


def test_a_write_without_an_answer_makes_two_values_right():
    checker = written("a")
    checker.next_value("a")
    checker.read("a", value_of("a", 1))
    checker.read("a", value_of("a", 2))
    assert not checker.wrong
    checker.stored("a")
    checker.read("a", value_of("a", 1))
    assert len(checker.wrong) == 1
