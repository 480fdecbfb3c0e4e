"""What a trace says about the environment of its process."""

from __future__ import annotations

import gzip
import json

from busbound._environment import environment, variables
from busbound._unprofiled import ENVIRONMENT, KEY, compress


def test_only_named_variables_are_kept_without_secrets_and_paths():
    kept = variables(
        {
            "NCCL_P2P_DISABLE": "1",
            "TORCH_HOME": "/home/someone/.cache",
            "OMP_NUM_THREADS": "8",
            "NCCL_API_TOKEN": "secret",
            "CUDA_VISIBLE_DEVICES": "3",
            "MASTER_ADDR": "host",
            "HF_TOKEN": "secret",
            "PATH": "/bin",
        }
    )
    assert kept == {"NCCL_P2P_DISABLE": "1", "OMP_NUM_THREADS": "8", "TORCH_HOME": "(a path)"}


def test_the_environment_has_nothing_else():
    one = environment()
    assert sorted(one) == ["cpus", "memory", "variables", "versions"]
    assert one["cpus"] >= 1
    assert set(one["versions"]) <= {"python", "torch"}


def test_it_is_written_once_and_stays_if_steps_are_added(tmp_path):
    plain, path = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_text('{\n  "schemaVersion": 1, "traceEvents": []}')
    compress(str(plain), str(path), [], {"cpus": 4})
    compress(str(path), str(path), [20.0])
    text = gzip.decompress(path.read_bytes())
    assert json.loads(text) == {KEY: [20.0], ENVIRONMENT: {"cpus": 4}, "schemaVersion": 1, "traceEvents": []}
    assert text.count(ENVIRONMENT.encode()) == 1
