// A selected range of time: how long it is, how busy each lane was, and how many bytes moved.

import { busyWithin, bytesWithin } from '../rows';
import { bytes, moment, rate, time } from '../words';
import type { Run } from './layout';
import type { View } from './view';

/** The first line is the duration, then one line per device. */
export function measured(runs: readonly Run[], { from, to }: View): string[] {
  const lines = [`${time(to - from)} selected, from ${moment(from)} to ${moment(to)}`];
  for (const { picture, offset } of runs) {
    for (const group of picture.groups) {
      if (group.of !== 'device') continue;
      const parts: string[] = [];
      for (const lane of group.lanes) {
        const [start, end] = [from - offset, to - offset];
        const busy = lane.rows.reduce((sum, row) => sum + busyWithin(row, start, end), 0);
        if (busy <= 0) continue;
        const moved = lane.rows.reduce((sum, row) => sum + bytesWithin(row, start, end), 0);
        // Rows of one lane overlap, so only a single row has a share of the range.
        const share = lane.rows.length === 1 ? ` (${((100 * busy) / (to - from)).toFixed(0)}%)` : '';
        parts.push(`${lane.title} ${time(busy)}${share}${moved > 0 ? `, ${bytes(moved)} at ${rate(moved / busy)}` : ''}`);
      }
      const name = runs.length > 1 ? `${picture.label}: ${group.title}` : group.title;
      lines.push(`${name}: ${parts.join('; ') || 'nothing ran'}`);
    }
  }
  return lines;
}
