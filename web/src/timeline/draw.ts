// Draws lanes. The cost depends on the number of pixels, not of events: a search finds the segments narrower than a
// pixel, and precomputed sums give its shade.

import { firstAbove, firstFrom } from '../search';
import type { Color, Surface } from '../surface';
import { at as momentOn, bytes, count, rate } from '../words';
import { AXIS, type Layout, type RowLine, type Run } from './layout';
import { type Scale, ticks } from './view';

export interface Chosen {
  readonly line: RowLine;
  readonly piece: number;
}

export interface Scene {
  readonly layout: Layout;
  readonly scale: Scale;
  readonly width: number;
  readonly runs: readonly Run[];
  /** The finding that is marked. */
  readonly finding: number | null;
  readonly chosen: Chosen | null;
}

export function drawTimeline(surface: Surface, scene: Scene): void {
  const { layout, scale, runs } = scene;
  const single = runs.length === 1 ? runs[0] : null;
  if (single) shadeExcluded(surface, single, scale, layout.height);
  axis(surface, scene);
  for (const line of layout.rows) {
    drawRow(surface, line, scale);
    cutOff(surface, line, scale);
  }
  if (single && scene.finding !== null) markFinding(surface, single, scene.finding, scale, layout);
  if (scene.chosen) outline(surface, scene.chosen, scale);
  gutter(surface, scene);
}

function shadeExcluded(surface: Surface, { picture, offset }: Run, scale: Scale, height: number): void {
  const clamp = (x: number) => Math.min(Math.max(x, scale.left), scale.right);
  const from = clamp(scale.x(picture.analyzed[0] + offset));
  const to = clamp(scale.x(picture.analyzed[1] + offset));
  if (from > scale.left) surface.rect(scale.left, AXIS, from - scale.left, height - AXIS, 'shade', 1);
  if (to < scale.right) surface.rect(to, AXIS, scale.right - to, height - AXIS, 'shade', 1);
}

function axis(surface: Surface, { layout, scale, runs }: Scene): void {
  const { at, step } = ticks(scale, 110);
  for (const moment of at) {
    const x = scale.x(moment);
    surface.line([[x, AXIS - 8], [x, layout.height]], 'line', 1, false);
    surface.text(x + 3, 9, momentOn(moment, step), 'faint', 'start');
  }
  if (runs.length !== 1) return;
  const { steps, unit } = runs[0].picture;
  let labeled = -Infinity;
  for (let i = firstAbove(steps.end, scale.view.from); i < steps.start.length && steps.start[i] < scale.view.to; i++) {
    const x = Math.max(scale.x(steps.start[i]), scale.left);
    if (x < labeled + 46) continue;
    const color = steps.outlier[i] ? 'mark' : 'faint';
    surface.line([[x, AXIS - 14], [x, AXIS]], color, 1, true);
    // Steps are marked on devices only: the host runs ahead, and predictions have their own steps.
    for (const { group, y, height } of layout.rows) {
      if (group.of === 'device') surface.line([[x, y], [x, y + height + 1]], color, 1, true);
    }
    surface.text(x + 3, AXIS - 10, `${unit} ${i + 1}`, steps.outlier[i] ? 'mark' : 'text', 'start');
    labeled = x;
  }
}

const IDLE: readonly [string, Color][] = [
  ['host inside a copy call', 'idle-copy'],
  ['waiting for a launch', 'idle-launch'],
  ['host inside a sync call', 'idle-sync'],
  ['host busy with other work', 'idle-host'],
  ['waiting for input', 'idle-input'],
];

function colorOf(line: RowLine, piece: number): Color {
  const { sort } = line.lane;
  if (sort === 'idle') {
    const name = line.run.picture.names[line.row.name[piece]];
    return IDLE.find(([start]) => name.startsWith(start))?.[1] ?? 'idle-unknown';
  }
  // Pageable copies have their own color, because they are slower and block the host.
  if (sort === 'h2d' || sort === 'd2h') {
    const note = line.run.picture.names[line.row.note[piece]];
    return note.includes('pageable') ? 'pageable' : sort;
  }
  return sort;
}

/** Segments at least this many pixels wide are drawn separately. */
const WIDE = 1.5;

function drawRow(surface: Surface, line: RowLine, scale: Scale): void {
  const { row, y, height, run } = line;
  const shift = run.offset;
  const from = scale.view.from - shift;
  const to = scale.view.to - shift;
  let i = firstAbove(row.end, from);
  // Adjacent columns with the same shade are drawn as one rectangle.
  let open: { x: number; width: number; alpha: number; color: Color } | null = null;
  const close = () => {
    if (open) surface.rect(open.x, y, open.width, height, open.color, open.alpha);
    open = null;
  };
  while (i < row.length && row.start[i] < to) {
    const x = scale.x(row.start[i] + shift);
    const wide = (row.end[i] - row.start[i]) / scale.perPixel;
    if (wide >= WIDE) {
      close();
      drawPiece(surface, line, i, Math.max(x, scale.left), Math.min(x + wide, scale.right));
      i++;
      continue;
    }
    const column = Math.floor(x);
    const ends = scale.time(column + 1) - shift;
    let next = Math.max(firstFrom(row.start, ends, i), i + 1);
    // A long segment that begins in this column is drawn separately.
    if (next - 1 > i && (row.end[next - 1] - row.start[next - 1]) / scale.perPixel >= WIDE) next--;
    const share = (row.busyBefore[next] - row.busyBefore[i]) / scale.perPixel;
    const alpha = Math.ceil(Math.min(1, Math.max(0.5, share)) * 8) / 8;
    const color = colorOf(line, i);
    if (open && open.alpha === alpha && open.color === color && open.x + open.width === column) open.width += 1;
    else {
      close();
      if (column >= scale.left - 1) open = { x: Math.max(column, scale.left), width: 1, alpha, color };
    }
    i = next;
  }
  close();
}

function drawPiece(surface: Surface, line: RowLine, piece: number, from: number, to: number): void {
  const { row, y, height } = line;
  const several = row.count[piece] > 1;
  // A gap separates neighbors; merged events are drawn less tall.
  const gap = to - from > 4 ? 1 : 0;
  const inset = several ? 2.5 : 0;
  surface.rect(from, y + inset, to - from - gap, height - 2 * inset, colorOf(line, piece), 1);
  const room = Math.floor((to - from - 8) / 6.4);
  const text = labelOf(line, piece, room);
  if (text) surface.text(from + 4, y + height / 2 + 0.5, text, 'paper', 'start');
}

/** The label that fits into a segment: size and rate of a copy, or as much of the name as fits. */
function labelOf({ row, lane, run }: RowLine, piece: number, room: number): string {
  const times = row.count[piece] > 1 ? `${count(row.count[piece])} × ` : '';
  const isCopy = lane.sort === 'h2d' || lane.sort === 'd2h' || lane.sort === 'other';
  if (isCopy && row.bytes[piece] > 0) {
    const size = bytes(row.bytes[piece]);
    const busy = row.busyBefore[piece + 1] - row.busyBefore[piece];
    const fitting = [`${times}${size}, ${rate(row.bytes[piece] / busy)}`, size].find((text) => text.length <= room);
    return fitting ?? '';
  }
  if (room < 3) return '';
  const name = times + short(run.picture.names[row.name[piece]]);
  return name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name;
}

/** Marks the time after the end of a truncated recording, which is not idle time. */
function cutOff(surface: Surface, { run, group, title, y, height }: RowLine, scale: Scale): void {
  const { until } = run.picture;
  if (until === null || group.of !== 'device') return;
  const from = Math.max(scale.x(until + run.offset), scale.left);
  if (from >= scale.right) return;
  surface.rect(from, y, scale.right - from, height + 1, 'shade', 1);
  for (let x = from + 4; x < scale.right; x += 12) surface.line([[x, y + height], [x + 6, y]], 'line', 1, false);
  if (title && scale.right - from > 240) surface.text(from + 8, y + height / 2, 'not recorded: the file is truncated', 'faint', 'start');
}

/** `at::native::vectorized_elementwise_kernel` of `void at::native::vectorized_elementwise_kernel<4, …>(…)`. */
export function short(name: string): string {
  const bare = name.replace(/^void /, '');
  return bare.startsWith('Mem') ? bare : bare.replace(/[<(].*$/s, '') || bare;
}

function markFinding(surface: Surface, run: Run, finding: number, scale: Scale, layout: Layout): void {
  const spans = run.picture.findings[finding];
  if (!spans) return;
  // Predictions have no findings.
  const rows = layout.rows.filter((line) => line.group.of !== 'predicted');
  for (let i = firstAbove(spans.end, scale.view.from); i < spans.start.length && spans.start[i] < scale.view.to; ) {
    const x = Math.max(scale.x(spans.start[i]), scale.left);
    let to = scale.x(spans.end[i]);
    i++;
    // Spans that would overlap on the screen are merged.
    while (i < spans.start.length && scale.x(spans.start[i]) <= to + 1) to = scale.x(spans.end[i++]);
    const width = Math.max(1.5, Math.min(to, scale.right) - x);
    surface.rect(x, AXIS - 4, width, 4, 'mark', 1);
    for (const { y, height } of rows) surface.rect(x, y, width, height + 1, 'mark', 0.16);
  }
}

function outline(surface: Surface, { line, piece }: Chosen, scale: Scale): void {
  const shift = line.run.offset;
  const left = Math.max(scale.x(line.row.start[piece] + shift), scale.left);
  const right = Math.min(Math.max(scale.x(line.row.end[piece] + shift), left + 2), scale.right);
  if (right < scale.left || left > scale.right) return;
  const { y, height } = line;
  surface.line([[left, y], [right, y], [right, y + height], [left, y + height], [left, y]], 'text', 2, false);
}

function gutter(surface: Surface, { layout, scale, width }: Scene): void {
  surface.rect(0, 0, scale.left, layout.height, 'paper', 1);
  for (const line of layout.lines) {
    const middle = line.y + line.height / 2;
    if (line.kind === 'title') {
      surface.rect(0, line.y + 3, width, line.height - 5, 'shade', 1);
      surface.text(6, middle + 1, `${line.folded ? '▸' : '▾'} ${line.text}`, 'text', 'start', true);
    } else if (line.title) {
      const room = Math.floor((scale.left - 12) / 6.2);
      const text = line.title.length > room ? `${line.title.slice(0, room - 1)}…` : line.title;
      surface.text(scale.left - 6, middle, text, 'text', 'end');
    }
  }
}
