// Draws lanes. The cost depends on the number of pixels, not of events: a search finds the segments narrower than a
// pixel, and precomputed sums give its shade.

import type { Mark } from '../layout';
import { firstAbove, firstFrom } from '../search';
import type { Color, Surface } from '../surface';
import { bytes, count, rate } from '../words';
import { drawTicks } from './axis';
import type { Place } from './calls';
import type { Found } from './found';
import { AXIS, type Layout, type RowLine, type Run } from './layout';
import { drawCursor, drawLaunch, drawPath, drawRange } from './overlay';
import type { Scale, View } from './view';

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
  /** The segment that a pointer in any chart is on. */
  readonly pointed: Chosen | null;
  readonly cursor: number | null;
  /** The step that a pointer is on in the chart of steps. */
  readonly step: number | null;
  readonly found: Found | null;
  readonly range: View | null;
  readonly hasPath: boolean;
  /** The call of the chosen work, or the work of the chosen call. */
  readonly launches: readonly { readonly call: Place; readonly work: Place }[];
}

export function drawTimeline(surface: Surface, scene: Scene): void {
  const { layout, scale, runs } = scene;
  const single = runs.length === 1 ? runs[0] : null;
  if (single) shadeExcluded(surface, single, scale, layout.height);
  axis(surface, scene);
  for (const line of layout.rows) {
    drawRow(surface, line, scale, scene.found);
    cutOff(surface, line, scale);
  }
  if (single && scene.finding !== null) markFinding(surface, single, scene.finding, scale, layout);
  if (single && scene.step !== null) pointStep(surface, single, scene.step, scale, layout);
  if (scene.hasPath) for (const run of runs) drawPath(surface, run, scale, layout);
  if (scene.range) drawRange(surface, scene.range, scale, layout.height);
  for (const { call, work } of scene.launches) if (scene.chosen) drawLaunch(surface, scene.chosen.line.run, scale, layout, call, work);
  if (scene.pointed) outline(surface, scene.pointed, scale);
  if (scene.chosen) outline(surface, scene.chosen, scale);
  drawCursor(surface, scene.cursor, scale, AXIS - 6, layout.height);
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
  drawTicks(surface, scale, AXIS - 8, layout.height);
  if (runs.length !== 1) return;
  const { picture, offset } = runs[0];
  const { steps, unit } = picture;
  const first = firstAbove(steps.end, scale.view.from - offset);
  let labeled = -Infinity;
  for (let i = first; i < steps.start.length && steps.start[i] + offset < scale.view.to; i++) {
    const x = Math.max(scale.x(steps.start[i] + offset), scale.left);
    // A step that has just begun leaves no room for the label of the one before it.
    const next = i + 1 < steps.start.length ? scale.x(steps.start[i + 1] + offset) : Infinity;
    const text = `${unit} ${steps.number[i]}`;
    const room = 6.6 * text.length + 8;
    if (x < labeled + 4 || (i === first && next - x < room && next < scale.right - room)) continue;
    const color = steps.outlier[i] ? 'mark' : 'faint';
    surface.line([[x, AXIS - 18], [x, AXIS]], color, 1, true);
    // Steps are marked on devices only: the host runs ahead, and predictions have their own steps.
    for (const { group, y, height } of layout.rows) {
      if (group.of === 'device') surface.line([[x, y], [x, y + height + 1]], color, 1, true);
    }
    surface.text(x + 3, AXIS - 12, text, steps.outlier[i] ? 'mark' : 'text', 'start');
    labeled = x + room;
  }
}

function pointStep(surface: Surface, { picture, offset }: Run, step: number, scale: Scale, layout: Layout): void {
  const clamp = (x: number) => Math.min(Math.max(x, scale.left), scale.right);
  const [from, to] = [clamp(scale.x(picture.steps.start[step] + offset)), clamp(scale.x(picture.steps.end[step] + offset))];
  surface.rect(from, AXIS, to - from, layout.height - AXIS, 'link', 0.1);
}

/** Marked segments have their own color; the others have that of their lane. */
const MARKED: Readonly<Record<Mark, Color | null>> = {
  none: null,
  pageable: 'pageable',
  idle_copy: 'idle-copy',
  idle_launch: 'idle-launch',
  idle_sync: 'idle-sync',
  idle_input: 'idle-input',
  idle_host: 'idle-host',
  idle_unknown: 'idle-unknown',
};

function colorOf({ row, run, lane }: RowLine, piece: number): Color {
  return MARKED[run.picture.marks[row.mark[piece]]] ?? lane.sort;
}

/** Segments at least this many pixels wide are drawn separately. */
const WIDE = 1.5;
/** Segments that do not match the search. */
const FADED = 0.22;

/** Columns of pixels next to each other that look the same. */
interface Columns {
  readonly x: number;
  width: number;
  readonly height: number;
  readonly color: Color;
  readonly alpha: number;
}

/** Draws short segments as columns whose height is the share of time that is busy: 5% busy looks 5% busy. */
class ColumnPainter {
  private open: Columns | null = null;
  /** Busy time that does not fit into its own column. */
  private carried: { column: number; busy: number; color: Color; alpha: number } | null = null;

  constructor(
    private readonly surface: Surface,
    private readonly line: RowLine,
    private readonly scale: Scale,
  ) {}

  add(column: number, busy: number, color: Color, alpha: number): void {
    const before = this.carried;
    this.carried = null;
    if (before && before.column < column) this.paint(before.column, before.busy, before.color, before.alpha);
    const all = busy + (before?.column === column ? before.busy : 0);
    this.paint(column, all, color, alpha);
    const rest = all - this.scale.perPixel;
    if (rest > 0) this.carried = { column: column + 1, busy: rest, color, alpha };
  }

  private paint(column: number, busy: number, color: Color, alpha: number): void {
    const height = Math.max(1, Math.round(Math.min(1, busy / this.scale.perPixel) * this.line.height));
    const { open } = this;
    if (open && open.height === height && open.color === color && open.alpha === alpha && open.x + open.width === column) {
      open.width += 1;
      return;
    }
    this.close();
    if (column >= this.scale.left - 1) this.open = { x: Math.max(column, this.scale.left), width: 1, height, color, alpha };
  }

  flush(): void {
    const { carried } = this;
    this.carried = null;
    if (carried) this.paint(carried.column, carried.busy, carried.color, carried.alpha);
    this.close();
  }

  private close(): void {
    const { open, line } = this;
    if (open) this.surface.rect(open.x, line.y + line.height - open.height, open.width, open.height, open.color, open.alpha);
    this.open = null;
  }
}

export function drawRow(surface: Surface, line: RowLine, scale: Scale, found: Found | null = null): void {
  const { row, run } = line;
  const shift = run.offset;
  const to = scale.view.to - shift;
  const isWide = (piece: number) => (row.end[piece] - row.start[piece]) / scale.perPixel >= WIDE;
  const alpha = (from: number, next: number) => (found && !found.has(row, from, next) ? FADED : 1);
  const columns = new ColumnPainter(surface, line, scale);
  let i = firstAbove(row.end, scale.view.from - shift);
  while (i < row.length && row.start[i] < to) {
    const x = scale.x(row.start[i] + shift);
    if (isWide(i)) {
      columns.flush();
      const end = scale.x(row.end[i] + shift);
      drawPiece(surface, line, i, Math.max(x, scale.left), Math.min(end, scale.right), alpha(i, i + 1));
      i++;
      continue;
    }
    const column = Math.floor(x);
    const ends = scale.time(column + 1) - shift;
    let next = Math.max(firstFrom(row.start, ends, i), i + 1);
    // A long segment that begins in this column is drawn separately.
    if (next - 1 > i && isWide(next - 1)) next--;
    columns.add(column, row.busyBefore[next] - row.busyBefore[i], colorOf(line, i), alpha(i, next));
    i = next;
  }
  columns.flush();
}

function drawPiece(surface: Surface, line: RowLine, piece: number, from: number, to: number, alpha: number): void {
  const { row, y, height } = line;
  // A gap separates neighbors. Merged events are as tall as they are busy.
  const gap = to - from > 4 ? 1 : 0;
  const share = row.count[piece] > 1 ? (row.busyBefore[piece + 1] - row.busyBefore[piece]) / (row.end[piece] - row.start[piece]) : 1;
  const tall = Math.max(1, Math.round(Math.min(1, share) * height));
  surface.rect(from, y + height - tall, to - from - gap, tall, colorOf(line, piece), alpha);
  const room = Math.floor((to - from - 8) / 6.4);
  const text = tall > 11 && alpha === 1 ? labelOf(line, piece, room) : '';
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
  const { offset } = run;
  // Predictions have no findings.
  const rows = layout.rows.filter((line) => line.group.of !== 'predicted');
  for (let i = firstAbove(spans.end, scale.view.from - offset); i < spans.start.length && spans.start[i] + offset < scale.view.to; ) {
    const x = Math.max(scale.x(spans.start[i] + offset), scale.left);
    let to = scale.x(spans.end[i] + offset);
    i++;
    // Spans that would overlap on the screen are merged.
    while (i < spans.start.length && scale.x(spans.start[i] + offset) <= to + 1) to = scale.x(spans.end[i++] + offset);
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
