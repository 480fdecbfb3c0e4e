// Which piece is it, and what is to be said of it?

import { firstAbove } from '../search';
import { bytes, count, moment, rate, time } from '../words';
import type { Chosen } from './draw';
import type { Layout, RowLine } from './layout';
import type { Scale } from './view';

/** The piece at a place of the drawing; one that is hard to hit counts a little beyond its edges. */
export function pieceAt(layout: Layout, scale: Scale, x: number, y: number): Chosen | null {
  const line = layout.rows.find((row) => y >= row.y && y < row.y + row.height + 1);
  if (!line || x < scale.left) return null;
  const at = scale.time(x) - line.run.offset;
  const near = 2 * scale.perPixel;
  const piece = firstAbove(line.row.end, at - near);
  if (piece >= line.row.length || line.row.start[piece] > at + near) return null;
  // Under the pointer before beside it.
  const next = piece + 1;
  const isUnder = next < line.row.length && line.row.end[piece] < at && line.row.start[next] <= at;
  return { line, piece: isUnder ? next : piece };
}

export function describe({ line, piece }: Chosen): string[] {
  const { row, lane, run, group } = line;
  const { names, steps, unit } = run.picture;
  const start = row.start[piece];
  const taken = row.end[piece] - start;
  const several = row.count[piece] > 1;
  const name = names[row.name[piece]] || '(without a name)';
  const lines = [several ? `${count(row.count[piece])} events; the longest: ${name}` : name];
  const busy = row.busyBefore[piece + 1] - row.busyBefore[piece];
  lines.push(`${several ? `${time(busy)} of ` : ''}${time(taken)}, from ${moment(start)}`);
  if (row.bytes[piece] > 0) {
    const reached = busy > 0 ? `, ${rate(row.bytes[piece] / busy)}` : '';
    lines.push(`${bytes(row.bytes[piece])} (${count(row.bytes[piece])} bytes)${reached}`);
  }
  const note = names[row.note[piece]];
  lines.push(note ? `${lane.title}, ${note}` : lane.title);
  if (!Number.isNaN(row.launched[piece])) lines.push(`its call began ${time(start - row.launched[piece])} before`);
  // Steps are the devices': the host runs ahead of them, and what is predicted has others.
  const step = group.of === 'device' ? firstAbove(steps.end, start) : steps.start.length;
  if (step < steps.start.length && steps.start[step] <= start) lines.push(`${unit} ${step + 1}`);
  return lines;
}

/** The next or previous piece of the same row. */
export function beside({ line, piece }: Chosen, by: 1 | -1): Chosen {
  const next = Math.min(Math.max(piece + by, 0), line.row.length - 1);
  return { line, piece: next };
}

/** The piece of a row that covers a time, or comes next after it. */
export function nearest(line: RowLine, at: number): Chosen | null {
  if (line.row.length === 0) return null;
  const piece = Math.min(firstAbove(line.row.end, at - line.run.offset), line.row.length - 1);
  return { line, piece };
}
