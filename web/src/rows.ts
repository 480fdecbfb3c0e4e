// Sums over a part of a row: how much of a range was busy, and how many bytes moved in it.

import type { Row } from './picture';
import { firstAbove } from './search';

/** A sum up to a point in time; that of a segment is spread evenly over its duration. */
function upTo(row: Row, before: Float64Array, at: number): number {
  const i = firstAbove(row.end, at);
  if (i >= row.length || row.start[i] >= at) return before[i];
  return before[i] + ((before[i + 1] - before[i]) * (at - row.start[i])) / (row.end[i] - row.start[i]);
}

/** Bytes that a row moved up to a point in time. */
export function bytesUpTo(row: Row, at: number): number {
  return upTo(row, row.bytesBefore, at);
}

export function bytesWithin(row: Row, from: number, to: number): number {
  return bytesUpTo(row, to) - bytesUpTo(row, from);
}

export function busyWithin(row: Row, from: number, to: number): number {
  return upTo(row, row.busyBefore, to) - upTo(row, row.busyBefore, from);
}
