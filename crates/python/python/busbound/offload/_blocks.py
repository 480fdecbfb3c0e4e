"""Which parts of a model are streamed one by one? The children of its largest lists of modules.

Everything outside of the blocks stays on the GPU: embeddings, norms, heads. No torch: a module is what has children,
parameters and buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ._sizes import OffloadError

#: A child that holds more than this share of a model's weights and has lists of its own is not one block but several.
_TOO_LARGE = 0.25
#: A smaller block costs more host time than its memory is worth: a copy of 256 KiB reaches 60% of the link's rate.
SMALLEST_BLOCK = 1 << 18

#: Classes of torch.nn whose children are used one after another.
_LISTS = ("ModuleList", "Sequential")


class Block(NamedTuple):
    """A module that is copied as one piece."""

    name: str
    module: Any


def find_blocks(
    model: Any, given: Sequence[Any] | str | None = None, smallest: int = SMALLEST_BLOCK
) -> list[Block]:
    """The blocks of a model in the order of its modules, or those given as modules, names or the name of a list."""
    names = {id(module): name for name, module in model.named_modules()}
    found = _given(model, given, names) if given is not None else _lists(model)
    blocks: list[Block] = []
    seen: set[int] = set()
    for module in found:
        # A module that is in a list twice is one block that is used twice.
        if id(module) not in seen and bytes_in(module) >= smallest:
            seen.add(id(module))
            blocks.append(Block(names[id(module)], module))
    _refuse_nested(blocks)
    return blocks


def bytes_in(module: Any) -> int:
    """Bytes of the parameters and buffers of a module."""
    tensors = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _given(model: Any, given: Sequence[Any] | str, names: dict[int, str]) -> list[Any]:
    if isinstance(given, str):
        listed = _named(model, given)
        return list(listed.children())
    modules = [_named(model, each) if isinstance(each, str) else each for each in given]
    for module in modules:
        if id(module) not in names:
            raise OffloadError(f"blocks= contains a {type(module).__name__} that is not part of the model")
    return modules


def _named(model: Any, name: str) -> Any:
    try:
        return model.get_submodule(name)
    except AttributeError:
        raise OffloadError(f"the model has no module {name!r}: see model.named_modules()") from None


def _lists(model: Any) -> list[Any]:
    """The children of the outermost lists; of a child that is most of the model, those of its own lists."""
    total = bytes_in(model)

    def found_in(module: Any) -> list[Any]:
        children = list(module.children())
        if not _is_list(module) or _with_weights(children) < 2:
            return [each for child in children for each in found_in(child)]
        return [each for child in children for each in (parts_of(child) or [child])]

    def parts_of(child: Any) -> list[Any]:
        size = bytes_in(child)
        if size <= _TOO_LARGE * total:
            return []
        parts = found_in(child)
        # Lists of small things inside of a block are not what it consists of.
        return parts if sum(bytes_in(part) for part in parts) >= size / 2 else []

    return found_in(model)


def _is_list(module: Any) -> bool:
    return any(each.__name__ in _LISTS for each in type(module).__mro__)


def _with_weights(modules: Iterable[Any]) -> int:
    return len({id(module) for module in modules if bytes_in(module)})


def _refuse_nested(blocks: list[Block]) -> None:
    ids = {id(block.module): block.name for block in blocks}
    for block in blocks:
        for name, inner in block.module.named_modules():
            if name and id(inner) in ids:
                raise OffloadError(f"block {ids[id(inner)]} is inside block {block.name}: give only one of them")
