import itertools
import keyword
import random

import pytest

from envsched.environments.synthetic.draft import Draft, UnfitError, compose
from envsched.environments.synthetic.families import FAMILIES
from envsched.environments.synthetic.family import Family
from envsched.environments.synthetic.suite import LENGTHS
from envsched.environments.synthetic.variant import draw_variants

families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


@families
def test_names_cannot_clash(family: Family) -> None:
    verbs = [verb for tool in family.tools.values() for verb in tool.verbs]
    arguments = [name for names in family.arguments.values() for name in names]
    fields = [name for names in family.fields.values() for name in names]
    for words in (verbs, arguments, fields):
        assert len(words) == len(set(words))
    assert not set(verbs) & set(fields)
    assert not any(keyword.iskeyword(word) for word in [*verbs, *arguments, *fields])
    assert all(len(tool.verbs) >= 4 for tool in family.tools.values())


@families
def test_every_subtask_works_somewhere(family: Family) -> None:
    rng = random.Random(0)
    variants = draw_variants(family, 20, rng)
    for subtask in family.subtasks:
        lengths = set()
        for variant, _ in itertools.product(variants, range(5)):
            draft = Draft(variant, rng)
            try:
                draft.add(subtask)
            except UnfitError:
                continue
            lengths.add(len(draft.steps))
        assert lengths, subtask.__name__
        assert max(lengths) <= 6


@families
def test_every_rule_and_optional_tool_occurs(family: Family) -> None:
    variants = draw_variants(family, 4, random.Random(0))
    assert len({tuple(variant.naming.rules.values()) for variant in variants}) == 4
    drawn = {tool for variant in draw_variants(family, 20, random.Random(1)) for tool in variant.naming.tools}
    assert drawn == set(family.tools)


@families
def test_any_environment_has_tasks_of_every_length(family: Family) -> None:
    rng = random.Random(7)
    for variant in draw_variants(family, 10, rng):
        assert 5 <= len(variant.naming.tools) <= 8
        for length in LENGTHS:
            record = compose(variant, rng, length, "task", "train", set())
            assert len(record["expert"]) == length
