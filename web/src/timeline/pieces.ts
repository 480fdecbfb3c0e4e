// Finds and describes segments.

import { firstAbove } from '../search';
import { bytes, count, moment, rate, time } from '../words';
import type { Chosen } from './draw';
import type { Layout, RowLine } from './layout';
import type { Scale } from './view';

/** The segment at a point of the drawing, with a small tolerance around narrow ones. */
export function pieceAt(layout: Layout, scale: Scale, x: number, y: number): Chosen | null {
  const line = layout.rows.find((row) => y >= row.y && y < row.y + row.height + 1);
  if (!line || x < scale.left) return null;
  const at = scale.time(x) - line.run.offset;
  const near = 2 * scale.perPixel;
  const piece = firstAbove(line.row.end, at - near);
  if (piece >= line.row.length || line.row.start[piece] > at + near) return null;
  // A segment under the pointer wins over one next to it.
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
  const name = names[row.name[piece]] || '(no name)';
  const lines = [several ? `${count(row.count[piece])} events; the longest: ${name}` : name];
  const busy = row.busyBefore[piece + 1] - row.busyBefore[piece];
  lines.push(`${several ? `${time(busy)} of ` : ''}${time(taken)}, from ${moment(start + run.offset)}`);
  if (row.bytes[piece] > 0) {
    const reached = busy > 0 ? `, ${rate(row.bytes[piece] / busy)}` : '';
    lines.push(`${bytes(row.bytes[piece])} (${count(row.bytes[piece])} bytes)${reached}`);
  }
  const note = names[row.note[piece]];
  lines.push(note ? `${lane.title}, ${note}` : lane.title);
  if (!Number.isNaN(row.launched[piece])) lines.push(`launched ${time(start - row.launched[piece])} earlier`);
  // Steps apply to devices only: the host runs ahead, and predictions have their own steps.
  const step = group.of === 'device' ? firstAbove(steps.end, start) : steps.start.length;
  if (step < steps.start.length && steps.start[step] <= start) lines.push(`${unit} ${steps.number[step]}`);
  return lines;
}

/** The next or previous segment of the same row. */
export function neighbor({ line, piece }: Chosen, by: 1 | -1): Chosen {
  const next = Math.min(Math.max(piece + by, 0), line.row.length - 1);
  return { line, piece: next };
}

/** The segment of a row at a point in time, or the next one after it. */
export function nearest(line: RowLine, at: number): Chosen | null {
  if (line.row.length === 0) return null;
  const piece = Math.min(firstAbove(line.row.end, at - line.run.offset), line.row.length - 1);
  return { line, piece };
}
