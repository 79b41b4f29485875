"""The suite of seed 0, generated once."""

import pytest

from envsched.environments.synthetic import Suite, generate


@pytest.fixture(scope="session")
def suite() -> Suite:
    return generate(0)
