"""The adapters that each suite of this folder runs over."""

from pathlib import Path

import pytest

from model_world import ADAPTERS, OVER_HTTP, World


@pytest.fixture(params=ADAPTERS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


@pytest.fixture(params=OVER_HTTP)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)
