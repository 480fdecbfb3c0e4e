"""Files that `--emit` writes for other tools parse, and have only entries that those tools take.

What the tools accept is written down here, with its source. accelerate and DeepSpeed also load the files themselves (real_loaders.py); the other
tools need a GPU to be installed.
"""

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

BUSBOUND = [sys.executable, "-m", "busbound"]

# accelerate 1.15, commands/config/config_args.py: unknown keys of the file are an error, distributed_type is required.
ACCELERATE = {"distributed_type", "num_machines", "num_processes", "fsdp_config", "dynamo_config"}
# accelerate 1.15, utils/dataclasses.py: DistributedType.
DISTRIBUTED = {"NO", "MULTI_GPU", "FSDP", "DEEPSPEED"}
# accelerate 1.15, commands/launch.py: each entry of a section is a flag of `accelerate launch` without its dashes.
FSDP = {"fsdp_version": int, "fsdp_auto_wrap_policy": str, "fsdp_offload_params": bool}
DYNAMO = {"dynamo_backend": str, "dynamo_mode": str}
# DeepSpeed 0.19, runtime/zero/config.py and offload_config.py: unknown entries are an error.
ZERO = {
    "stage": int,
    "overlap_comm": bool,
    "stage3_prefetch_bucket_size": int,
    "offload_param": {"device": str, "pin_memory": bool},
    "offload_optimizer": {"device": str, "pin_memory": bool},
}
DEEPSPEED = {"_busbound": list, "train_micro_batch_size_per_gpu": int, "gradient_accumulation_steps": int, "zero_optimization": ZERO}
# vLLM, engine/arg_utils.py and config/offload.py; SGLang, srt/server_args.py.
ARGUMENTS = {
    "vllm": {"--offload-group-size": int, "--offload-num-in-group": int, "--offload-prefetch-step": int, "--cpu-offload-gb": float, "--no-enforce-eager": None},
    "sglang": {"--offload-group-size": int, "--offload-num-in-group": int, "--offload-prefetch-step": int, "--cpu-offload-gb": int},
}
# diffusers 0.42, hooks/group_offloading.py: apply_group_offloading.
GROUP_OFFLOADING = {"onload_device", "offload_device", "offload_type", "num_blocks_per_group", "non_blocking", "use_stream", "record_stream", "low_cpu_mem_usage"}

OFFLOAD = ["plan", "offload", "--layers", "40", "--bytes", "168MB", "--compute", "1.5", "--link", "h200"]
DDP = ["plan", "ddp", "--params", "7e9", "--ranks", "8", "--link", "pcie4x16", "--compute", "200"]
RUNS = ["runs/prefetch_too_late", "runs/offload_that_would_fit", "off_block_pageable_c4", "launch_bound", "train_pageable"]
TOOLS = ["accelerate", "deepspeed", "fsdp", "vllm", "sglang", "diffusers"]


def emit(tool, command):
    return subprocess.run([*BUSBOUND, *command, "--emit", tool], capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=[*RUNS, "offload", "ddp"])
def command(request, fixtures):
    plans = {"offload": OFFLOAD, "ddp": DDP}
    return plans.get(request.param) or ["diagnose", str(fixtures / f"{request.param}.json.gz")]


def fits(value, schema, where=""):
    """Whether nested entries have these names and types."""
    if not isinstance(schema, dict):
        assert type(value) is schema, f"{where}: {value!r}"
        return
    assert set(value) <= set(schema), f"{where}: {set(value) - set(schema)}"
    for key, inner in value.items():
        fits(inner, schema[key], f"{where}.{key}")


def arguments(text):
    """The flags and values that a shell passes from such a file."""
    words = [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]
    found, words = {}, iter(words)
    for word in words:
        found[word] = None if word.startswith("--no-") else next(words)
    return found


def test_accelerate_takes_the_file(command):
    text = emit("accelerate", command)
    file = yaml.safe_load(text)
    assert set(file) <= ACCELERATE and file["distributed_type"] in DISTRIBUTED
    fits(file.get("fsdp_config", {}), FSDP)
    fits(file.get("dynamo_config", {}), DYNAMO)
    if "fsdp_config" in file:
        assert file["distributed_type"] == "FSDP" and file["fsdp_config"]["fsdp_version"] == 2


def test_deepspeed_takes_the_file(command):
    file = json.loads(emit("deepspeed", command))
    fits(file, DEEPSPEED)
    assert file["_busbound"] and file["train_micro_batch_size_per_gpu"] == 1
    zero = file.get("zero_optimization", {})
    for part in ("offload_param", "offload_optimizer"):
        assert zero.get(part, {}).get("device", "none") in {"none", "cpu"}
    # Parameters are offloaded only with stage 3.
    if zero.get("offload_param", {}).get("device") == "cpu":
        assert zero["stage"] == 3


def loaded(tool, text, folder):
    """What the tool itself makes of a file, or its error."""
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed: requirements-tests.txt has it for Linux")
    file = folder / ("config.yaml" if tool == "accelerate" else "config.json")
    file.write_text(text)
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("real_loaders.py")), tool, str(file)], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr


def test_accelerate_itself_loads_the_file(command, tmp_path):
    text = emit("accelerate", command)
    code, found = loaded("accelerate", text, tmp_path)
    assert code == 0, found
    file = yaml.safe_load(text)
    assert found["distributed_type"] == file["distributed_type"]
    assert found["unknown"] == []
    for name, value in file.get("fsdp_config", {}).items():
        assert found["entries"][name] == value


def test_deepspeed_itself_loads_the_file(command, tmp_path):
    text = emit("deepspeed", command)
    code, found = loaded("deepspeed", text, tmp_path)
    assert code == 0, found
    zero = json.loads(text).get("zero_optimization", {})
    assert found["stage"] == zero.get("stage", 0)
    for part in ("offload_param", "offload_optimizer"):
        for name, value in zero.get(part, {}).items():
            assert found[part][name] == value


@pytest.mark.parametrize(("tool", "text"), [("accelerate", 'distributed_type: "FSDP"\nfdsp_config: {}\n'), ("deepspeed", '{"zero_optimization": {"stge": 3}}')])
def test_the_tools_themselves_refuse_a_misspelled_entry(tool, text, tmp_path):
    code, error = loaded(tool, text, tmp_path)
    assert code != 0 and ("fdsp_config" in error or "stge" in error), error


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_engines_take_the_arguments(command, engine):
    known = ARGUMENTS[engine]
    found = arguments(emit(engine, command))
    for flag, value in found.items():
        assert flag in known, flag
        if known[flag]:
            known[flag](value)
    if "--offload-group-size" in found:
        group, streamed, ahead = (int(found[f"--offload-{name}"]) for name in ("group-size", "num-in-group", "prefetch-step"))
        # vLLM, config/offload.py: validate_offload_config. One buffer overlaps nothing.
        assert 1 <= streamed <= group and ahead >= 2


@pytest.mark.parametrize("tool", ["fsdp", "diffusers"])
def test_the_snippets_are_python_that_calls_the_right_functions(command, tool):
    text = emit(tool, command)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    names = {getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls}
    if not calls:
        assert "No setting of " in text
    elif tool == "fsdp":
        assert "fully_shard" in names and names & {"CPUOffloadPolicy", "OffloadPolicy"}
    else:
        (call,) = [call for call in calls if getattr(call.func, "id", "") == "apply_group_offloading"]
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert set(given) <= GROUP_OFFLOADING
        assert given["use_stream"].value is True and given["record_stream"].value is True


def test_the_prefetch_of_fsdp_names_the_following_blocks():
    class Block:
        def set_modules_to_forward_prefetch(self, modules):
            self.ahead = modules

    text = emit("fsdp", OFFLOAD).replace("from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard", "")
    sharded = []
    scope = {"CPUOffloadPolicy": lambda pin_memory: pin_memory, "fully_shard": lambda module, offload_policy: sharded.append((module, offload_policy))}
    exec(text, scope)
    blocks = [Block() for _ in range(5)]
    scope["shard"]("model", blocks)
    assert sharded == [*((block, True) for block in blocks), ("model", True)]
    assert [len(block.ahead) for block in blocks] == [3, 3, 2, 1, 0]
    assert blocks[0].ahead == blocks[1:4]


def test_all_files_of_a_run_say_the_same(fixtures):
    command = ["diagnose", str(fixtures / "runs/prefetch_too_late.json.gz")]
    together = yaml.safe_load(emit("yaml", command))
    for engine in ("vllm", "sglang"):
        given = {flag.removeprefix("--").replace("-", "_"): int(value) for flag, value in arguments(emit(engine, command)).items()}
        assert given == together[engine]
    file = json.loads(emit("deepspeed", command))
    assert file["zero_optimization"]["offload_param"]["pin_memory"] is together["deepspeed"]["zero_optimization.offload_param.pin_memory"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_without_a_setting_says_why(tool, fixtures):
    text = emit(tool, ["diagnose", str(fixtures / "runs/slow_loader.json.gz")])
    assert "No setting of " in text and "num_workers" in text
