// What is drawn over the lanes: the critical path, arrows from calls to work, the selected range and the pointer's time.

import type { Row } from '../picture';
import { firstAbove } from '../search';
import type { Surface } from '../surface';
import { time } from '../words';
import { AXIS, type Layout, type Run } from './layout';
import type { Scale, View } from './view';

/** The segments of the path as a line below their rows, dashed where something waits, connected where the path changes rows. */
export function drawPath(surface: Surface, { picture, offset }: Run, scale: Scale, layout: Layout): void {
  const { path, rows, classes } = picture;
  let last: { x: number; y: number } | null = null;
  const first = Math.max(0, firstAbove(path.end, scale.view.from - offset) - 1);
  for (let i = first; i < path.start.length && path.start[i] + offset < scale.view.to; i++) {
    const line = Number.isNaN(path.row[i]) ? undefined : layout.byRow.get(rows[path.row[i]]);
    if (!line) {
      last = null;
      continue;
    }
    const clamp = (x: number) => Math.min(Math.max(x, scale.left), scale.right);
    const [from, to] = [clamp(scale.x(path.start[i] + offset)), clamp(scale.x(path.end[i] + offset))];
    const y = line.y + line.height - 1;
    // Segments too short to see are drawn as one.
    if (last && last.y === y && to - last.x < 1) continue;
    if (last && last.y !== y && from > scale.left) arrow(surface, [last.x, last.y], [from, y]);
    surface.line([[from, y], [Math.max(to, from + 1), y]], 'text', classes[path.class[i]].isWait ? 1.5 : 3, classes[path.class[i]].isWait);
    last = { x: to, y };
  }
}

/** A line with a head at its end. */
export function arrow(surface: Surface, from: readonly [number, number], to: readonly [number, number]): void {
  surface.line([from, to], 'text', 1, false);
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  if (length < 8) return;
  const [dx, dy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const [x, y] = [to[0] - 6 * dx, to[1] - 6 * dy];
  surface.line([[x - 3 * dy, y + 3 * dx], to, [x + 3 * dy, y - 3 * dx]], 'text', 1.5, false);
}

/** An arrow from a call to its work; nothing if the group of either is folded. */
export function drawLaunch(surface: Surface, run: Run, scale: Scale, layout: Layout, call: { row: Row; piece: number }, work: { row: Row; piece: number }): void {
  const [a, b] = [layout.byRow.get(call.row), layout.byRow.get(work.row)];
  if (!a || !b) return;
  const at = (row: Row, piece: number) => scale.x(row.start[piece] + run.offset);
  const [from, to] = [at(call.row, call.piece), at(work.row, work.piece)];
  if (Math.max(from, to) < scale.left || Math.min(from, to) > scale.right) return;
  const clamp = (x: number) => Math.min(Math.max(x, scale.left), scale.right);
  const isUp = b.y < a.y;
  arrow(surface, [clamp(from), isUp ? a.y : a.y + a.height], [clamp(to), isUp ? b.y + b.height : b.y]);
}

export function drawRange(surface: Surface, range: View, scale: Scale, height: number): void {
  const clamp = (x: number) => Math.min(Math.max(x, scale.left), scale.right);
  const [from, to] = [clamp(scale.x(range.from)), clamp(scale.x(range.to))];
  if (to <= from) return;
  surface.rect(from, AXIS - 14, to - from, height - AXIS + 14, 'link', 0.13);
  for (const x of [from, to]) surface.line([[x, AXIS - 14], [x, height]], 'link', 1.5, false);
  if (to - from > 60) surface.text((from + to) / 2, AXIS - 22, time(range.to - range.from), 'link', 'middle', true);
}

export function drawCursor(surface: Surface, at: number | null, scale: Scale, top: number, bottom: number): void {
  if (at === null) return;
  const x = scale.x(at);
  if (x >= scale.left && x <= scale.right) surface.line([[x, top], [x, bottom]], 'faint', 1, true);
}
