// From a call to the work it launched, and back. The data has the time of each work's call; a call is the innermost event
// that starts at that time, on the only thread that has one.

import type { Group, Row } from '../picture';
import { firstFrom } from '../search';
import type { Run } from './layout';

export interface Place {
  readonly group: Group;
  readonly row: Row;
  readonly piece: number;
}

/** The call that launched a segment of a device; `null` if it is unknown or not drawn separately. */
export function callOf({ picture }: Run, row: Row, piece: number): Place | null {
  const at = row.launched[piece];
  if (Number.isNaN(at)) return null;
  const calls = picture.groups.filter((group) => group.of === 'thread').map((group) => innermostAt(group, at));
  const known = calls.filter((call) => call !== null);
  return known.length === 1 ? known[0] : null;
}

function innermostAt(group: Group, at: number): Place | null {
  let found: Place | null = null;
  for (const row of group.lanes.flatMap((lane) => lane.rows)) {
    const piece = firstFrom(row.start, at);
    if (piece < row.length && row.start[piece] === at && row.count[piece] === 1) found = { group, row, piece };
  }
  return found;
}

/** Most work looked at for one host event: an annotation may contain all of it. */
const MOST = 200;

/** The work launched within a host event, in order of its start. */
export function workOf(run: Run, group: Group, row: Row, piece: number): Place[] {
  const [from, to] = [row.start[piece], row.end[piece]];
  const found: Place[] = [];
  for (const device of run.picture.groups) {
    if (device.of !== 'device') continue;
    for (const work of device.lanes.flatMap((lane) => lane.rows)) {
      for (let i = 0; i < work.length && found.length < MOST; i++) {
        const at = work.launched[i];
        if (!(at >= from && (at < to || at === from))) continue;
        if (callOf(run, work, i)?.group === group) found.push({ group: device, row: work, piece: i });
      }
    }
  }
  return found.sort((a, b) => a.row.start[a.piece] - b.row.start[b.piece]);
}
