//! Which copies can a program issue ahead of their use, and how?

use busbound_trace::MemoryKind;

use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;

/// Double buffering, one layer ahead.
pub(in crate::findings) const PREFETCH_CODE: &str = "\
copies = torch.cuda.Stream()
ready = [torch.cuda.Event() for _ in layers]
used = [torch.cuda.Event() for _ in layers]
def fetch(i):    # double buffering; `host` is pinned
    with torch.cuda.stream(copies):
        # until the buffer is free again
        copies.wait_event(used[i - 2] if i >= 2 else used[-1])
        buffers[i % 2].copy_(host[i], non_blocking=True)
        ready[i].record(copies)
# once: the buffers may still be in use
copies.wait_stream(torch.cuda.current_stream())
fetch(0)
for i, layer in enumerate(layers):
    if i + 1 < len(layers):
        fetch(i + 1)
    torch.cuda.current_stream().wait_event(ready[i])
    x = layer(x, buffers[i % 2])
    used[i].record()";

/// The weights of a PyTorch model, streamed without other changes to the program.
pub(in crate::findings) const OFFLOAD_CODE: &str = "\
run = busbound.offload(model, gpu_memory=\"8GB\")    # as much as you can spare; streams the rest at the rate of the link
...
print(run.report())    # what a pass takes, and the limit";

/// Copies whose duration depends on the bus. Pageable copies cannot be prefetched; they have their own findings.
pub(in crate::findings) fn prefetched<'f, 'a>(facts: &'f Facts<'a>) -> impl Iterator<Item = &'f Copy<'a>> {
    facts.issued_copies().filter(|copy| {
        copy.is_on_bus() && copy.host_memory() != Some(MemoryKind::Pageable) && copy.is_large()
    })
}
