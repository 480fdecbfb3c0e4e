// Copies compared with the link: every copy over the bus as a dot, size by bandwidth, below the link's peak and the rates
// that copies of that size can reach.

import { Canvas } from './canvas';
import type { Chart } from './chart';
import type { Curve, Kind, Picture } from './picture';
import { type Color, type Shape, type Surface, SvgSurface } from './surface';
import type { Timeline } from './timeline/timeline';
import { around, hideTooltip, showTooltip } from './tooltip';
import { bytes, count, moment, rate, time } from './words';

const LEFT = 74;
const TOP = 18;
const BOTTOM = 36;

/** The axes cover the copies that take all but this share of the copy time. */
const UNIMPORTANT = 0.01;

interface Look {
  readonly color: Color;
  readonly shape: Shape;
}

/** Shapes also show the direction, so the kinds can be distinguished without colors. */
function look(kind: Kind): Look {
  const shape: Shape = kind.to === 'device' ? 'circle' : 'square';
  if (kind.memory === 'pageable') return { color: 'pageable', shape };
  return { color: kind.to === 'device' ? 'h2d' : 'd2h', shape };
}

function curveColor(curve: Curve): Color {
  if (!curve.pinned) return 'pageable';
  return curve.toDevice ? 'h2d' : 'd2h';
}

/** The kinds of copies that cross the link. */
function onLink(picture: Picture): readonly boolean[] {
  return picture.kinds.map((kind) => kind.to !== 'other');
}

/** The range of values that take all but a small share of the time at either end, over the copies on the link. */
function important(dots: readonly number[], value: (dot: number) => number, duration: (dot: number) => number): [number, number] {
  const sorted = [...dots].sort((a, b) => value(a) - value(b));
  const all = sorted.reduce((sum, dot) => sum + duration(dot), 0);
  const end = (from: number, by: 1 | -1) => {
    let [i, passed] = [from, 0];
    while (passed + duration(sorted[i]) < (UNIMPORTANT / 2) * all) {
      passed += duration(sorted[i]);
      i += by;
    }
    return value(sorted[i]);
  };
  return [end(0, 1), end(sorted.length - 1, -1)];
}

class Roofline {
  private readonly canvas: Canvas;
  private readonly hidden = new Set<number>();
  private readonly shown: readonly number[];
  private readonly curves: readonly Curve[];
  private readonly sizes: readonly [number, number];
  private readonly rates: readonly [number, number];
  /** The dot of a segment, by row and segment. */
  private readonly dotOf = new Map<string, number>();
  private current: number | null = null;

  constructor(
    mount: HTMLElement,
    private readonly picture: Picture,
    private readonly timeline: Timeline,
    private readonly onDot: (dot: number) => void,
  ) {
    const { dots } = picture;
    const crosses = onLink(picture);
    const all = Array.from({ length: dots.length }, (_, i) => i).filter((i) => crosses[dots.kind[i]]);
    const gbps = (i: number) => dots.bytes[i] / dots.duration[i];
    const taken = (i: number) => dots.duration[i] * dots.count[i];
    const [least, most] = important(all, (i) => dots.bytes[i], taken);
    const [slowest, fastest] = important(all, gbps, taken);
    this.sizes = [Math.min(least, 1 << 16) / 1.5, Math.max(most, 1 << 24) * 1.5];
    this.rates = [Math.min(slowest, 1) / 1.4, Math.max(fastest, picture.peak) * 1.5];
    const fits = (value: number, [from, to]: readonly [number, number]) => value >= from && value <= to;
    this.shown = all.filter((i) => fits(dots.bytes[i], this.sizes) && fits(gbps(i), this.rates));
    this.curves = picture.curves.filter((curve) => this.matters(curve));
    for (const i of this.shown) if (!Number.isNaN(dots.row[i])) this.dotOf.set(`${dots.row[i]}/${dots.piece[i]}`, i);
    this.legend(mount);
    const copies = this.shown.reduce((sum, i) => sum + dots.count[i], 0);
    this.canvas = new Canvas(
      mount,
      `${count(copies)} copies: bandwidth by size`,
      (surface) => {
        this.draw(surface, this.canvas.width, this.canvas.height);
        this.canvas.element.dataset['current'] = this.current === null ? '' : String(this.current);
      },
      (width) => Math.min(420, Math.max(280, width * 0.45)),
    );
    this.canvas.element.dataset['dots'] = String(copies);
    this.note(mount, all.reduce((sum, i) => sum + dots.count[i], 0) - copies);
    this.listen(this.canvas.element);
    timeline.onPoint((row, piece) => this.highlight(row === null ? null : (this.dotOf.get(`${picture.rows.indexOf(row)}/${piece}`) ?? null)));
  }

  /** Curves of the directions that are used: of the memory that is used, and of pinned memory to compare with. */
  private matters(curve: Curve): boolean {
    const { dots, kinds } = this.picture;
    const to = curve.toDevice ? 'device' : 'host';
    const isSame = (kind: Kind) => kind.to === to && (curve.pinned || kind.memory === 'pageable');
    return this.shown.some((i) => isSame(kinds[dots.kind[i]]));
  }

  private highlight(dot: number | null): void {
    if (dot === this.current) return;
    this.current = dot;
    this.canvas.redraw();
  }

  private legend(mount: HTMLElement): void {
    const legend = document.createElement('div');
    legend.className = 'legend';
    const of = new Map<number, number>();
    const { dots, kinds } = this.picture;
    for (const i of this.shown) of.set(dots.kind[i], (of.get(dots.kind[i]) ?? 0) + dots.count[i]);
    kinds.forEach((kind, i) => {
      if (!of.has(i)) return;
      const button = document.createElement('button');
      button.type = 'button';
      button.setAttribute('aria-pressed', 'true');
      const { color, shape } = look(kind);
      const swatch = document.createElement('i');
      swatch.className = `swatch ${color} ${shape}`;
      button.append(swatch, `${kind.label} (${count(of.get(i) ?? 0)})`);
      button.addEventListener('click', () => {
        if (!this.hidden.delete(i)) this.hidden.add(i);
        button.setAttribute('aria-pressed', String(!this.hidden.has(i)));
        this.canvas.redraw();
      });
      legend.append(button);
    });
    mount.append(legend);
  }

  /** What is not drawn, and where the curves come from. */
  private note(mount: HTMLElement, omitted: number): void {
    const [first] = this.curves;
    const source = first ? `Curves: ${first.source}.` : '';
    const rest = omitted > 0 ? ` Not drawn: ${count(omitted)} ${omitted === 1 ? 'copy' : 'copies'} outside the axes, less than 2% of the copy time.` : '';
    if (!source && !rest) return;
    const note = document.createElement('p');
    note.className = 'chart-note';
    note.textContent = `${source}${rest}`.trim();
    mount.append(note);
  }

  /** Where the plot ends; the labels of curves come after it. */
  private right(width: number): number {
    return width - (this.curves.length > 0 ? 96 : 16);
  }

  private x(size: number, width: number): number {
    const [least, most] = this.sizes;
    return LEFT + ((this.right(width) - LEFT) * Math.log(size / least)) / Math.log(most / least);
  }

  private y(gbps: number, height: number): number {
    const [slowest, fastest] = this.rates;
    const share = Math.log(Math.max(gbps, slowest) / slowest) / Math.log(fastest / slowest);
    return height - BOTTOM - (height - TOP - BOTTOM) * share;
  }

  private draw(surface: Surface, width: number, height: number): void {
    const { picture } = this;
    this.grid(surface, width, height);
    this.drawCurves(surface, width, height);
    if (picture.peak > 0) {
      const y = this.y(picture.peak, height);
      surface.line([[LEFT, y], [this.right(width), y]], 'text', 1.4, true);
      surface.text(LEFT + 6, y - 9, `${picture.link}: max ${rate(picture.peak)} per direction`, 'text', 'start');
    }
    const { dots, kinds } = picture;
    const looks = kinds.map(look);
    const alpha = this.shown.length > 5_000 ? 0.35 : 0.6;
    for (const i of this.shown) {
      const kind = dots.kind[i];
      if (this.hidden.has(kind)) continue;
      const size = Math.min(9, 3 + 0.7 * Math.log2(dots.count[i]));
      const [x, y] = [this.x(dots.bytes[i], width), this.y(dots.bytes[i] / dots.duration[i], height)];
      surface.mark(x, y, size, looks[kind].shape, looks[kind].color, alpha);
      if (i !== this.current) continue;
      const half = size + 4;
      surface.line([[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half], [x - half, y - half]], 'text', 2, false);
    }
  }

  /** Each curve is labeled at its end; labels that would touch are moved apart. */
  private drawCurves(surface: Surface, width: number, height: number): void {
    const [least, most] = this.sizes;
    const ends: { y: number; curve: Curve }[] = [];
    for (const curve of this.curves) {
      const points = curve.points
        .filter(([size]) => size >= least && size <= most)
        .map(([size, gbps]) => [this.x(size, width), this.y(gbps, height)] as const);
      const last = points[points.length - 1];
      if (!last) continue;
      surface.line(points, curveColor(curve), 1.6, !curve.toDevice);
      ends.push({ y: last[1], curve });
    }
    ends.sort((a, b) => a.y - b.y);
    let lowest = -Infinity;
    for (const { y, curve } of ends) {
      lowest = Math.max(y, lowest + 14);
      surface.text(this.right(width) + 5, lowest, curve.label, curveColor(curve), 'start');
    }
  }

  private grid(surface: Surface, width: number, height: number): void {
    const [least, most] = this.sizes;
    const bottom = height - BOTTOM;
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    const room = (this.right(width) - LEFT) / Math.log2(most / least);
    const spacing = [1, 2, 4, 5, 10].find((powers) => powers * room > 58) ?? 10;
    for (let power = 0; power <= 44; power += spacing) {
      const size = 2 ** power;
      if (size < least || size > most) continue;
      const x = this.x(size, width);
      surface.line([[x, TOP], [x, bottom]], 'line', 1, false);
      surface.text(x, bottom + 12, `${2 ** (power % 10)} ${units[Math.floor(power / 10)]}`, 'faint', 'middle');
    }
    const [slowest, fastest] = this.rates;
    for (let power = -4; power <= 4; power++) {
      const gbps = 10 ** power;
      if (gbps < slowest || gbps > fastest) continue;
      const y = this.y(gbps, height);
      surface.line([[LEFT, y], [this.right(width), y]], 'line', 1, false);
      surface.text(LEFT - 6, y, `${gbps} GB/s`, 'faint', 'end');
    }
    surface.text((LEFT + this.right(width)) / 2, height - 8, 'copy size', 'faint', 'middle');
  }

  private dotAt(x: number, y: number): number | null {
    const { dots } = this.picture;
    let [best, nearest] = [-1, 100];
    for (const i of this.shown) {
      if (this.hidden.has(dots.kind[i])) continue;
      const dx = this.x(dots.bytes[i], this.canvas.width) - x;
      if (dx > 10 || dx < -10) continue;
      const dy = this.y(dots.bytes[i] / dots.duration[i], this.canvas.height) - y;
      const distance = dx * dx + dy * dy;
      if (distance < nearest) [best, nearest] = [i, distance];
    }
    return best < 0 ? null : best;
  }

  private listen(element: HTMLCanvasElement): void {
    const at = (event: MouseEvent) => {
      const { left, top } = element.getBoundingClientRect();
      return this.dotAt(event.clientX - left, event.clientY - top);
    };
    element.addEventListener('pointermove', (event) => {
      const dot = at(event);
      this.point(dot);
      if (dot === null) return hideTooltip();
      showTooltip(this.describe(dot), event.clientX, around(event.clientY));
    });
    element.addEventListener('pointerleave', () => {
      hideTooltip();
      this.point(null);
    });
    element.addEventListener('click', (event) => {
      const dot = at(event);
      hideTooltip();
      if (dot !== null) this.onDot(dot);
    });
  }

  /** Highlights a dot here, and its copy in the timeline. */
  private point(dot: number | null): void {
    const { dots, rows } = this.picture;
    const isDrawn = dot !== null && !Number.isNaN(dots.row[dot]);
    this.timeline.point(isDrawn ? { row: rows[dots.row[dot]], piece: dots.piece[dot] } : null, null);
    this.highlight(dot);
  }

  private describe(dot: number): string[] {
    const { dots, kinds } = this.picture;
    const { offset } = this.timeline.runs[0];
    const lines = [
      `${kinds[dots.kind[dot]].label}: ${bytes(dots.bytes[dot])} at ${rate(dots.bytes[dot] / dots.duration[dot])}`,
      `${time(dots.duration[dot])}, from ${moment(dots.start[dot] + offset)}`,
    ];
    if (dots.count[dot] > 1) lines.push(`and ${count(dots.count[dot] - 1)} similar copies`);
    if (!Number.isNaN(dots.row[dot])) lines.push('Click to see it in the timeline.');
    return lines;
  }

  still(width: number): SVGSVGElement {
    const height = 420;
    const surface = new SvgSurface(width, height, 'Copies: bandwidth by size');
    this.draw(surface, width, height);
    return surface.element;
  }
}

export const rooflineChart: Chart = ({ mount, picture, timeline, toTimeline }) => {
  const { dots, rows } = picture;
  const crosses = onLink(picture);
  if (!dots.kind.some((kind) => crosses[kind])) return [];
  const show = (dot: number) => {
    // Copies that did not fit into the timeline have no row.
    if (Number.isNaN(dots.row[dot])) return;
    timeline.showPiece(rows[dots.row[dot]], dots.piece[dot]);
    toTimeline();
  };
  return [new Roofline(mount, picture, timeline, show)];
};
