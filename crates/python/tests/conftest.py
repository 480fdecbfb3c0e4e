import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def fixtures():
    return ROOT / "fixtures"


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def in_tmp(tmp_path):
    """A temporary working directory."""
    before = os.getcwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)
