//! What does the fix look like in PyTorch? A few lines to start from, where the fix is code.

use crate::analysis::facts::Facts;

/// `None` where it is a setting, or a question of what the program needs.
pub(super) fn code(id: &str, facts: &Facts<'_>) -> Option<&'static str> {
    Some(match id {
        "pageable_copies" | "non_blocking_pageable" if uses_loader(facts) => LOADER,
        "pageable_copies" | "non_blocking_pageable" => PIN,
        "pageable_d2h" => PIN_BACK,
        "serialised_copies" | "late_prefetch" => PREFETCH,
        "small_copies" => PACK,
        "sync_in_loop" => READ_LATER,
        "input_wait" => WORKERS,
        "launch_bound" => GRAPH,
        "unneeded_offload" => RESIDENT,
        "exposed_communication" => BUCKETS,
        _ => return None,
    })
}

/// Whether batches come from PyTorch's own loader.
pub(super) fn uses_loader(facts: &Facts<'_>) -> bool {
    facts.trace.names().iter().any(|name| name.starts_with("enumerate(DataLoader)"))
}

const LOADER: &str = "\
loader = DataLoader(dataset, batch_size, pin_memory=True, num_workers=4)
for batch in loader:
    batch = batch.to(device, non_blocking=True)";

const PIN: &str = "\
host = [weight.pin_memory() for weight in weights]    # once, before the loop
for step in range(steps):
    for buffer, source in zip(buffers, host):
        buffer.copy_(source, non_blocking=True)";

const PIN_BACK: &str = "\
out = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)    # once
done = torch.cuda.Event()
out.copy_(result, non_blocking=True)
done.record()
...                   # work that does not need it
done.synchronize()    # before reading `out`";

const PREFETCH: &str = "\
copies = torch.cuda.Stream()
ready = [torch.cuda.Event() for _ in layers]
used = [torch.cuda.Event() for _ in layers]
def fetch(i):    # two buffers in turn; `host` is pinned
    with torch.cuda.stream(copies):
        copies.wait_event(used[i - 2] if i >= 2 else used[-1])    # the buffer is free again
        buffers[i % 2].copy_(host[i], non_blocking=True)
        ready[i].record(copies)
copies.wait_stream(torch.cuda.current_stream())    # once: the buffers' memory may still be in use
fetch(0)
for i, layer in enumerate(layers):
    if i + 1 < len(layers):
        fetch(i + 1)
    torch.cuda.current_stream().wait_event(ready[i])
    x = layer(x, buffers[i % 2])
    used[i].record()";

const PACK: &str = "\
flat = torch.empty(sum(t.numel() for t in small), dtype=small[0].dtype, pin_memory=True)
sent = torch.cuda.Event()    # both once; tensors of one dtype go into one buffer
for small in batches:
    sent.synchronize()       # the copy before has read the buffer
    torch.cat([t.flatten() for t in small], out=flat)
    on_device = flat.to(device, non_blocking=True)    # one copy
    sent.record()
    parts = on_device.split([t.numel() for t in small])";

const READ_LATER: &str = "\
total = torch.zeros((), device=device)
for i, batch in enumerate(loader):
    loss = step(batch)
    total += loss.detach()        # not loss.item()
    if i % 100 == 99:
        print(total.item() / 100)
        total.zero_()";

const WORKERS: &str = "\
loader = DataLoader(dataset, batch_size, num_workers=8, persistent_workers=True,
                    prefetch_factor=4, pin_memory=True)";

const GRAPH: &str = "\
step = torch.compile(step, mode=\"reduce-overhead\")                 # CUDA graphs inside
optimizer = torch.optim.AdamW(model.parameters(), fused=True)";

const RESIDENT: &str = "\
weights = [weight.to(device) for weight in weights]    # once, before the loop";

const BUCKETS: &str = "\
model = DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True)
with model.no_sync():    # all but the last micro-batch
    loss(model(batch)).backward()";
