// Traces of a job with a late rank: each step is a kernel, then an all-reduce that ends when the last rank has arrived.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const STEP_US = 10_000;
const STEPS = 6;

function rank(number, computeUs, ranks) {
  const events = [];
  const add = (cat, name, ts, dur, tid, args = {}, pid = 1) => events.push({ ph: 'X', cat, name, ts, dur, pid, tid, args });
  let correlation = 0;
  const launched = (name, at, ts, dur, stream, args = {}) => {
    correlation += 1;
    add('cuda_runtime', 'cudaLaunchKernel', at, 2, 1, { correlation });
    add('kernel', name, ts, dur, stream, { device: 0, context: 1, stream, correlation, ...args }, 0);
  };
  for (let step = 0; step < STEPS; step += 1) {
    const begin = 1_000_000 + step * STEP_US;
    add('user_annotation', `ProfilerStep#${step}`, begin, STEP_US - 1, 1);
    launched('gemm', begin + 5, begin + 10, computeUs, 7);
    launched('ncclDevKernel_AllReduce_Sum_f32_RING_LL', begin + 8, begin + 10 + computeUs, STEP_US - 100 - computeUs + (number * 7 + step * 3) % 5, 30, {
      'Collective name': 'allreduce', 'In msg nelems': 1_000_000, 'Out msg nelems': 1_000_000, 'Group size': ranks, dtype: 'Float', 'Process Group Name': '0', 'Process Group Ranks': `[${[...Array(ranks).keys()]}]`, Seq: step,
    });
  }
  return { schemaVersion: 1, distributedInfo: { backend: 'nccl', rank: number, world_size: ranks }, deviceProperties: [{ id: 0, name: 'NVIDIA H100 80GB HBM3' }], traceEvents: events };
}

/** The paths of four traces; rank 2 computes for longer than the others. */
export function lateRank(directory) {
  mkdirSync(directory, { recursive: true });
  return [3000, 3200, 7000, 3400].map((us, number, all) => {
    const path = join(directory, `rank-${number}.json`);
    writeFileSync(path, JSON.stringify(rank(number, us, all.length)));
    return path;
  });
}
