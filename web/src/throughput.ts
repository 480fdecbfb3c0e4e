// Bus throughput over time in each direction, compared with the link's peak, on the timeline's scale.

import { Canvas } from './canvas';
import type { Chart } from './chart';
import type { Group, Lane, Picture, Row, Sort } from './picture';
import { bytesUpTo } from './rows';
import { type Color, type Surface, SvgSurface } from './surface';
import { drawTicks } from './timeline/axis';
import type { Timeline } from './timeline/timeline';
import { Scale } from './timeline/view';
import { around, hideTooltip, showTooltip } from './tooltip';
import { moment, rate } from './words';

const HEIGHT = 132;
const TOP = 30;
const BOTTOM = 8;

interface Direction {
  readonly sort: Sort;
  readonly label: string;
  readonly color: Color;
}

const DIRECTIONS = [
  ['h2d', 'H2D'],
  ['d2h', 'D2H'],
] as const;

export function throughput(group: Group, sort: Sort, from: number, to: number, buckets: number): Float64Array {
  const rows = group.lanes.filter((lane) => lane.sort === sort).flatMap((lane) => lane.rows);
  const rates = new Float64Array(buckets);
  const step = (to - from) / buckets;
  for (const row of rows) {
    let before = bytesUpTo(row, from);
    for (let i = 0; i < buckets; i++) {
      const upTo = bytesUpTo(row, from + (i + 1) * step);
      rates[i] += (upTo - before) / step;
      before = upTo;
    }
  }
  return rates;
}

class Bus {
  private readonly canvas: Canvas;
  private selecting: number | null = null;
  private readonly directions: readonly Direction[];

  constructor(
    mount: HTMLElement,
    private readonly timeline: Timeline,
    private readonly picture: Picture,
    private readonly group: Group,
    private readonly offset: number,
    private readonly title: string,
  ) {
    this.directions = this.used();
    this.canvas = new Canvas(mount, `${title} over time`, (surface) => this.draw(surface, this.canvas.width), () => HEIGHT);
    timeline.onChange(() => this.canvas.redraw());
    timeline.onCursor(() => this.canvas.redraw());
    this.listen(this.canvas.element);
  }

  private scale(width: number): Scale {
    return new Scale(this.timeline.view, this.timeline.left, width);
  }

  /** The directions with traffic anywhere in the trace, in the color that their copies have in the timeline. */
  private used(): readonly Direction[] {
    return DIRECTIONS.flatMap(([sort, label]) => {
      const rows = this.group.lanes.filter((lane) => lane.sort === sort).flatMap((lane) => lane.rows);
      if (!rows.some(hasBytes)) return [];
      const pageable = this.picture.marks.indexOf('pageable');
      const isPageable = rows.every((row) => row.mark.every((mark) => mark === pageable));
      return [{ sort, label, color: isPageable ? 'pageable' : sort }];
    });
  }

  private draw(surface: Surface, width: number): void {
    const scale = this.scale(width);
    const { from, to } = scale.view;
    const buckets = Math.max(50, Math.round((width - scale.left) / 2));
    const all = this.directions.map(({ sort, label, color }) => ({ color, label, rates: throughput(this.group, sort, from - this.offset, to - this.offset, buckets) }));
    // Overlapping copies, or a link faster than assumed, can exceed the peak.
    const most = all.reduce((most, { rates }) => rates.reduce((a, b) => Math.max(a, b), most), this.group.peak);
    const y = (gbps: number) => HEIGHT - BOTTOM - (gbps / most) * (HEIGHT - TOP - BOTTOM);
    drawTicks(surface, scale, TOP - 4, HEIGHT - BOTTOM, false);
    const until = this.picture.until === null ? Infinity : this.picture.until + this.offset;
    for (const { color, rates } of all) {
      const step = (to - from) / buckets;
      // Traffic that was not recorded is unknown, not zero.
      const known = Array.from(rates.subarray(0, Math.max(0, Math.min(buckets, Math.floor((until - from) / step)))));
      known.forEach((gbps, i) => {
        if (gbps > 0) surface.rect(scale.x(from + i * step), y(gbps), step / scale.perPixel, y(0) - y(gbps), color, 0.25);
      });
      surface.line(known.flatMap((gbps, i) => [[scale.x(from + i * step), y(gbps)], [scale.x(from + (i + 1) * step), y(gbps)]] as const), color, 1.3, false);
    }
    surface.rect(0, 0, scale.left, HEIGHT, 'paper', 1);
    surface.line([[scale.left, y(0)], [width, y(0)]], 'line', 1, false);
    surface.line([[scale.left, y(this.group.peak)], [width, y(this.group.peak)]], 'text', 1, true);
    surface.text(scale.left - 6, y(this.group.peak), rate(this.group.peak), 'text', 'end');
    surface.text(scale.left - 6, y(0) - 4, '0 GB/s', 'faint', 'end');
    this.key(surface, scale, all);
    this.timeline.drawCursor(surface, scale, TOP - 4, HEIGHT - BOTTOM);
  }

  /** What the curves are, above them. */
  private key(surface: Surface, scale: Scale, all: readonly { readonly color: Color; readonly label: string }[]): void {
    let x = 0;
    for (const { color, label } of all) {
      surface.rect(x, 3, 12, 10, color, 1);
      surface.text(x + 17, 9, label, 'text', 'start');
      x += 54;
    }
    const room = scale.right > 560;
    surface.text(x + 6, 9, room ? `${this.title}; dashed: peak of ${this.picture.link} per direction` : this.title, 'faint', 'start');
  }

  private listen(element: HTMLCanvasElement): void {
    const at = (event: PointerEvent) => event.clientX - element.getBoundingClientRect().left;
    element.addEventListener('pointerdown', (event) => {
      this.selecting = at(event);
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener('pointermove', (event) => {
      const scale = this.scale(this.canvas.width);
      const x = at(event);
      if (x < scale.left) return this.leave();
      const time = scale.time(x);
      this.timeline.point(null, time);
      // As many nanoseconds as two pixels of the drawing.
      const near = 2 * scale.perPixel;
      const rates = this.directions.map(({ sort, label }) => `${label} ${rate(throughput(this.group, sort, time - near / 2 - this.offset, time + near / 2 - this.offset, 1)[0])}`);
      showTooltip([`at ${moment(time)}`, ...rates], event.clientX, around(event.clientY));
    });
    element.addEventListener('pointerup', (event) => {
      const scale = this.scale(this.canvas.width);
      const [a, b] = [this.selecting ?? 0, at(event)];
      this.selecting = null;
      if (Math.abs(b - a) > 4) this.timeline.show({ from: scale.time(Math.min(a, b)), to: scale.time(Math.max(a, b)) });
    });
    element.addEventListener('pointerleave', () => this.leave());
  }

  private leave(): void {
    hideTooltip();
    this.timeline.point(null, null);
  }

  still(width: number): SVGSVGElement {
    const surface = new SvgSurface(width, HEIGHT, `${this.title} over time`);
    this.draw(surface, width);
    return surface.element;
  }
}

function hasBytes(row: Row): boolean {
  return row.bytesBefore[row.length] > 0;
}

/** One chart per device that copies over the bus. */
export const throughputChart: Chart = ({ mount, timeline }) => {
  const charts: Bus[] = [];
  for (const { picture, offset } of timeline.runs) {
    for (const group of picture.groups) {
      if (group.of !== 'device' || group.peak <= 0) continue;
      const isCopied = (lane: Lane) => (lane.sort === 'h2d' || lane.sort === 'd2h') && lane.rows.some(hasBytes);
      // Without recorded bytes, a chart would show zero throughput.
      if (!group.lanes.some(isCopied)) continue;
      const of = timeline.runs.length > 1 ? `${picture.label}: ${group.title}` : group.title;
      charts.push(new Bus(mount, timeline, picture, group, offset, `Bus throughput, ${of}`));
    }
  }
  return charts;
};
