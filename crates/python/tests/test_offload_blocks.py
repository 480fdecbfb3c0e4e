"""Which parts of a model are streamed: no torch, modules that only have names and sizes instead."""

import pytest

from busbound.offload._blocks import bytes_in, find_blocks
from busbound.offload._sizes import OffloadError


class Weight:
    def __init__(self, size):
        self.size = size

    def numel(self):
        return self.size

    def element_size(self):
        return 1


class Module:
    """The part of a torch module that the search uses."""

    def __init__(self, *weights, **children):
        self.weights, self.named = [Weight(size) for size in weights], children

    def children(self):
        # As in torch: a module that is there twice is one child.
        return iter({id(each): each for each in self.named.values()}.values())

    def named_modules(self, prefix="", seen=None):
        seen = set() if seen is None else seen
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, child in self.named.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def get_submodule(self, name):
        for found, module in self.named_modules():
            if found == name:
                return module
        raise AttributeError(name)

    def parameters(self):
        return [weight for _, module in self.named_modules() for weight in module.weights]

    def buffers(self):
        return []


class ModuleList(Module):
    def __init__(self, *children):
        super().__init__(**{str(number): child for number, child in enumerate(children)})


class Stack(ModuleList):
    """Derived from a list, as people do."""


def decoder(layers=5, size=100):
    return Module(embed=Module(100), layers=ModuleList(*(Module(size) for _ in range(layers))), head=Module(100))


def names(model, *arguments, **options):
    return [block.name for block in find_blocks(model, *arguments, **{"smallest": 0, **options})]


def test_blocks_are_the_children_of_a_list():
    assert names(decoder()) == [f"layers.{number}" for number in range(5)]
    assert names(Module(layers=Stack(Module(1), Module(1)))) == ["layers.0", "layers.1"]


def test_a_child_that_is_most_of_the_model_is_several_blocks():
    both = Stack(decoder(), decoder())
    assert names(both) == [f"{model}.layers.{number}" for model in range(2) for number in range(5)]
    # A small list inside of a large block is not what it consists of.
    block = Module(1000, scales=ModuleList(Module(1), Module(1)))
    assert names(Module(layers=ModuleList(block, Module(1000)))) == ["layers.0", "layers.1"]


def test_small_blocks_and_repeated_ones_are_left_out():
    shared = Module(100)
    model = Module(layers=ModuleList(shared, Module(5), shared, Module(100)))
    assert names(model, smallest=10) == ["layers.0", "layers.3"]
    assert bytes_in(model) == 205


def test_blocks_can_be_given():
    model = Stack(decoder(), decoder())
    assert names(model, "1.layers") == [f"1.layers.{number}" for number in range(5)]
    assert names(model, ["0.layers.1", model.get_submodule("1.head")]) == ["0.layers.1", "1.head"]
    with pytest.raises(OffloadError, match="has no module 'layer'"):
        find_blocks(model, "layer")
    with pytest.raises(OffloadError, match="not part of the model"):
        find_blocks(model, [Module(1)])
    with pytest.raises(OffloadError, match="is inside block"):
        find_blocks(model, ["0", "0.layers.1"], smallest=0)


def test_a_model_without_lists_has_no_blocks():
    assert names(Module(10, first=Module(10), second=Module(10))) == []
