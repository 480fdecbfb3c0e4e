"""What accelerate and DeepSpeed make of a settings file, in a process of its own: `python real_loaders.py accelerate|deepspeed FILE` prints JSON.

Both import torch, which is gigabytes. Where it is not installed, it is replaced by a module that has everything and does nothing: what reads
and checks the file is the code of the packages.
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import logging
import sys
import types
from importlib.util import find_spec

#: Imported by the packages, and not needed to read a file.
UNNEEDED = ["torch", "psutil", "huggingface_hub", "safetensors", "hjson"]


class Anything(type):
    """Every attribute, call and item of such a class is itself."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *_args, **_options):
        return cls

    def __getitem__(cls, _item):
        return cls

    def __iter__(cls):
        return iter(())

    def __or__(cls, _other):
        return cls

    def __ror__(cls, _other):
        return cls


class Nothing(metaclass=Anything):
    pass


class Empty(types.ModuleType):
    __version__ = "2.11.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Empties(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, _path, _target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.names else None

    def create_module(self, spec):
        return Empty(spec.name)

    def exec_module(self, module):
        pass


def without(names):
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: Empty.__version__ if name in names else version(name)
    sys.meta_path.insert(0, Empties(names))


def accelerate(path):
    """The configuration, and the flags of `accelerate launch` that its entries are."""
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    config = load_config_from_file(path)
    flags = {action.dest for action in launch_command_parser()._actions}
    sections = {**config.fsdp_config, **{f"dynamo_{name.removeprefix('dynamo_')}": value for name, value in config.dynamo_config.items()}}
    return {"distributed_type": config.distributed_type.value, "entries": sections, "unknown": sorted(set(sections) - flags)}


def deepspeed(path, has_torch):
    """The part of the file that has its own class, with all defaults."""
    if not has_torch:
        # The package's own __init__ starts its engine.
        (root,) = find_spec("deepspeed").submodule_search_locations
        for name in ["", ".runtime", ".runtime.zero", ".runtime.zenflow"]:
            module = types.ModuleType(f"deepspeed{name}")
            module.__path__ = [root + name.replace(".", "/")]
            sys.modules[module.__name__] = module
        utils = sys.modules["deepspeed.utils"] = types.ModuleType("deepspeed.utils")
        utils.logger = logging.getLogger("deepspeed")
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    with open(path) as file:
        zero = json.load(file).get("zero_optimization", {})
    return json.loads(DeepSpeedZeroConfig(**zero).model_dump_json())


def main():
    tool, path = sys.argv[1:]
    has_torch = find_spec("torch") is not None
    without([name for name in UNNEEDED if find_spec(name) is None])
    found = accelerate(path) if tool == "accelerate" else deepspeed(path, has_torch)
    # Importing them prints lines of its own.
    print("\n" + json.dumps(found, default=str))


if __name__ == "__main__":
    main()
