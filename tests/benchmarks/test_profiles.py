"""Profiles say what a record would say, and no more."""

from collections import Counter

import numpy as np

from envsched.benchmarks.profiles import OUTCOMES, VERBS, make_profiles
from envsched.benchmarks.suite import KINDS, make_suite
from envsched.graph.profile import words

SUITE = make_suite(np.random.default_rng(0), (40, 40, 40))
PROFILES = make_profiles(np.random.default_rng(1), SUITE, ["a", "b", "c"], graded=False)


def test_keys_are_distinct_and_name_the_environment() -> None:
    assert len({profile.key for profile in PROFILES}) == 120
    assert Counter(profile.environment for profile in PROFILES) == {"a": 40, "b": 40, "c": 40}


def test_tools_carry_their_kind_and_a_name_of_their_own() -> None:
    tools = {profile.environment: profile.tools for profile in PROFILES}
    every = [name for names in tools.values() for name in names]
    assert len(set(every)) == len(every)
    for profile in PROFILES:
        for name, kind in zip(profile.tools, profile.kinds, strict=True):
            verb, entity = name.split("_")
            assert verb in VERBS[kind]
            assert entity in profile.state


def test_no_verb_belongs_to_two_kinds() -> None:
    assert max(Counter(verb for verbs in VERBS.values() for verb in verbs).values()) == 1


def test_most_calls_show_in_the_words_and_some_do_not() -> None:
    shown = []
    for row, profile in enumerate(PROFILES):
        environment = SUITE.environments[SUITE.environment[row]]
        for call in set(SUITE.tools[row].tolist()):
            entity = profile.state[environment.tools[call - environment.first_tool].entity]
            shown.append(entity in words(profile.text))
    assert 0.8 < np.mean(shown) < 0.98


def test_tasks_of_a_topic_share_words_across_environments() -> None:
    own, other = [], []
    said = [set(words(profile.text)) for profile in PROFILES]
    for first in range(120):
        for second in range(first):
            if SUITE.environment[first] != SUITE.environment[second]:
                same = SUITE.topic[first] == SUITE.topic[second]
                (own if same else other).append(len(said[first] & said[second]))
    assert not own or np.mean(own) > np.mean(other)


def test_checks_ask_for_what_calls_leave_behind() -> None:
    for row, profile in enumerate(PROFILES):
        kinds = {KINDS[kind] for kind in SUITE.kinds[row].tolist()}
        if kinds & OUTCOMES.keys():
            assert all(any(check.endswith(end) for end in OUTCOMES.values()) for check in profile.checks)
        else:
            assert profile.checks == ("answer is right",)
