// Search in the names of segments: how many match, which is next, and which part of a row to highlight.

import type { Row } from '../picture';
import { firstFrom } from '../search';
import type { Run } from './layout';

/** A segment of a run. */
export interface Match {
  readonly run: number;
  readonly row: Row;
  readonly piece: number;
}

interface Searched {
  readonly run: number;
  readonly offset: number;
  readonly row: Row;
  /** Matches before each segment. */
  readonly before: Uint32Array;
}

export class Found {
  readonly total: number;
  private readonly rows: readonly Searched[];
  private readonly of = new Map<Row, Uint32Array>();

  constructor(runs: readonly Run[], query: string) {
    const wanted = query.toLowerCase();
    this.rows = runs.flatMap(({ picture, offset }, run) => {
      const matches = picture.names.map((name) => name.toLowerCase().includes(wanted));
      // What is only predicted did not happen.
      const groups = picture.groups.filter((group) => group.of !== 'predicted');
      return groups.flatMap((group) => group.lanes).flatMap((lane) => lane.rows).map((row) => ({ run, offset, row, before: counted(row, matches) }));
    });
    for (const { row, before } of this.rows) this.of.set(row, before);
    this.total = this.rows.reduce((sum, { row, before }) => sum + before[row.length], 0);
  }

  /** Whether any segment of the row from `from` up to `to` matches. */
  has(row: Row, from: number, to: number): boolean {
    const before = this.of.get(row);
    return before !== undefined && before[to] > before[from];
  }

  /** The place of a match in order of time, from 1. */
  rank({ run, row, piece }: Match): number {
    const at = row.start[piece] + (this.rows.find((one) => one.run === run)?.offset ?? 0);
    let [rank, isBefore] = [0, true];
    for (const one of this.rows) {
      if (one.row === row) {
        rank += one.before[piece];
        isBefore = false;
      } else rank += one.before[upTo(one, at, isBefore)];
    }
    return rank + 1;
  }

  /** The next match after a time, or the previous one before it; `from` is the current match, if any. */
  next(at: number, from: Match | null, by: 1 | -1): Match | null {
    let best: { match: Match; start: number } | null = null;
    let isBefore = true;
    for (const one of this.rows) {
      const isSame = from !== null && one.row === from.row;
      if (isSame) isBefore = false;
      // Among segments that start together, earlier rows come first.
      const edge = isSame ? from.piece + (by === 1 ? 1 : 0) : upTo(one, at, from !== null && isBefore);
      const piece = by === 1 ? matchFrom(one, edge) : matchBefore(one, edge);
      if (piece === null) continue;
      const start = one.row.start[piece] + one.offset;
      if (best === null || (by === 1 ? start < best.start : start >= best.start)) best = { match: { run: one.run, row: one.row, piece }, start };
    }
    return best?.match ?? null;
  }
}

function counted(row: Row, matches: readonly boolean[]): Uint32Array {
  const before = new Uint32Array(row.length + 1);
  for (let i = 0; i < row.length; i++) before[i + 1] = before[i] + (matches[row.name[i]] ? 1 : 0);
  return before;
}

/** Segments that start before a time, and at it if `isIncluded`. */
function upTo({ row, offset }: Searched, at: number, isIncluded: boolean): number {
  let first = firstFrom(row.start, at - offset);
  if (isIncluded) while (first < row.length && row.start[first] + offset <= at) first++;
  return first;
}

/** The first match at or after a segment. */
function matchFrom({ row, before }: Searched, from: number): number | null {
  if (from >= row.length || before[row.length] === before[from]) return null;
  return firstReaching(before, before[from] + 1) - 1;
}

/** The last match before a segment. */
function matchBefore({ before }: Searched, to: number): number | null {
  return before[to] === 0 ? null : firstReaching(before, before[to]) - 1;
}

/** The first index whose value is at least `limit`; values never decrease. */
function firstReaching(values: Uint32Array, limit: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
