// Bus throughput over time in each direction, compared with the link's peak, on the timeline's scale.

import uPlot from 'uplot';

import type { Chart } from './chart';
import type { Group, Lane, Picture, Row, Sort } from './picture';
import { axisOf, ink, keepUp } from './plot';
import { firstAbove } from './search';
import { type Color, SvgSurface } from './surface';
import type { Timeline } from './timeline/timeline';
import { at, moment, rate } from './words';

const HEIGHT = 150;

/** Bytes of a row up to a point in time; a copy's bytes are spread evenly over its duration. */
function bytesUpTo(row: Row, at: number): number {
  const i = firstAbove(row.end, at);
  if (i >= row.length || row.start[i] >= at) return row.bytesBefore[i];
  return row.bytesBefore[i] + (row.bytes[i] * (at - row.start[i])) / (row.end[i] - row.start[i]);
}

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
  private readonly plot: uPlot;
  private readonly holder = document.createElement('div');
  private most = 0;

  constructor(
    mount: HTMLElement,
    private readonly timeline: Timeline,
    private readonly picture: Picture,
    private readonly group: Group,
    private readonly offset: number,
    title: string,
  ) {
    const heading = document.createElement('h3');
    heading.textContent = title;
    mount.append(heading, this.holder);
    const axis = axisOf(mount);
    this.plot = new uPlot(
      {
        width: Math.max(200, timeline.width),
        height: HEIGHT,
        padding: [8, 0, 0, 0],
        legend: { live: true },
        cursor: { drag: { x: true, y: false }, y: false },
        scales: { x: { time: false, auto: false, range: () => this.range() }, y: { range: () => [0, 1.08 * this.most] } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map((moment) => at(moment, (ticks[1] ?? 1) - (ticks[0] ?? 0))) },
          { ...axis, size: () => timeline.left, values: (_, ticks) => ticks.map((value) => `${value} GB/s`) },
        ],
        series: [
          { label: 'at', value: (_, now: number | null) => (now === null ? '–' : moment(now)) },
          this.series(mount, 'H2D', 'h2d'),
          this.series(mount, 'D2H', 'd2h'),
          { label: `peak of ${picture.link} per direction`, stroke: ink(mount, 'text'), dash: [6, 4], width: 1, points: { show: false }, value: (_, v: number | null) => (v === null ? '–' : rate(v)) },
        ],
        hooks: {
          setSelect: [
            (plot) => {
              if (plot.select.width < 2) return;
              const from = plot.posToVal(plot.select.left, 'x');
              const to = plot.posToVal(plot.select.left + plot.select.width, 'x');
              plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              timeline.show({ from, to });
            },
          ],
        },
      },
      this.data(),
      this.holder,
    );
    timeline.onChange(() => this.update());
    keepUp(this.plot, mount, () => timeline.width, () => this.update());
  }

  private series(mount: HTMLElement, label: string, color: Color): uPlot.Series {
    const value = (_: uPlot, v: number | null) => (v === null ? '–' : rate(v));
    const [stroke, fill] = [ink(mount, color), ink(mount, color, '33')];
    const series: uPlot.Series = { label, stroke, fill, width: 1.5, points: { show: false }, value };
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    return stepped ? { ...series, paths: stepped } : series;
  }

  private range(): [number, number] {
    return [this.timeline.view.from, this.timeline.view.to];
  }

  private data(): uPlot.AlignedData {
    const [from, to] = this.range();
    const buckets = Math.max(50, Math.round((this.timeline.width - this.timeline.left) / 2));
    const times = Float64Array.from({ length: buckets }, (_, i) => from + ((to - from) * i) / buckets);
    const { until } = this.picture;
    const known = (rates: Float64Array) =>
      // Traffic that was not recorded is unknown, not zero.
      until === null ? rates : Array.from(rates, (value, i) => (times[i] - this.offset < until ? value : null));
    const rates = (sort: Sort) => throughput(this.group, sort, from - this.offset, to - this.offset, buckets);
    const [up, down] = [rates('h2d'), rates('d2h')];
    // Overlapping copies, or a link faster than assumed, can exceed the peak.
    this.most = up.reduce((most, value) => Math.max(most, value), down.reduce((most, value) => Math.max(most, value), this.group.peak));
    const peak = new Float64Array(buckets).fill(this.group.peak);
    return [times, known(up), known(down), peak];
  }

  private isScheduled = false;
  private update(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      this.plot.setData(this.data());
    });
  }

  still(width: number): SVGSVGElement {
    const surface = new SvgSurface(width, HEIGHT, `Bus throughput, ${this.group.title}`);
    const [times, up, down] = this.data();
    const [from, to] = this.range();
    const { left } = this.timeline;
    const x = (at: number) => left + ((at - from) / (to - from)) * (width - left);
    const y = (gbps: number) => HEIGHT - 20 - (gbps / (1.08 * this.most)) * (HEIGHT - 30);
    const steps = (rates: ArrayLike<number | null | undefined>) =>
      Array.from(rates, (value, i) => [x(times[i]), value ?? NaN] as const)
        .filter(([, value]) => !Number.isNaN(value))
        .map(([at, value]) => [at, y(value)] as const);
    surface.line([[left, y(this.group.peak)], [width, y(this.group.peak)]], 'text', 1, true);
    surface.text(left - 6, y(this.group.peak), rate(this.group.peak), 'text', 'end');
    surface.text(left - 6, y(0), '0 GB/s', 'text', 'end');
    surface.line([[left, y(0)], [width, y(0)]], 'line', 1, false);
    surface.line(steps(up), 'h2d', 1.5, false);
    surface.line(steps(down), 'd2h', 1.5, false);
    surface.text(left, HEIGHT - 6, `orange: H2D, green: D2H; dashed: peak of ${this.picture.link}`, 'faint', 'start');
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
      charts.push(new Bus(mount, timeline, picture, group, offset, `Bus throughput: ${of}`));
    }
  }
  return charts;
};
