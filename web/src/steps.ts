// How long was each step? Outliers and steps excluded from the analysis are marked.

import uPlot from 'uplot';

import type { Chart } from './chart';
import type { Picture } from './picture';
import { axisOf, ink, keepUp } from './plot';
import { type Color, SvgSurface } from './surface';
import { time } from './words';

const HEIGHT = 190;

type Values = (number | null)[];

class Steps {
  private readonly plot: uPlot;
  private readonly numbers: number[];
  private readonly usual: Values;
  private readonly outliers: Values;
  private readonly excluded: Values;
  private readonly median: number;
  private readonly longest: number;

  constructor(
    mount: HTMLElement,
    private readonly picture: Picture,
    onStep: (from: number, to: number) => void,
  ) {
    const { steps } = picture;
    const lengths = Array.from(steps.start, (start, i) => steps.end[i] - start);
    this.numbers = lengths.map((_, i) => i + 1);
    const analyzed = lengths.filter((_, i) => steps.analyzed[i]).sort((a, b) => a - b);
    this.median = analyzed[(analyzed.length - 1) >> 1] ?? 0;
    this.usual = lengths.map((length, i) => (steps.analyzed[i] && !steps.outlier[i] ? length : null));
    this.outliers = lengths.map((length, i) => (steps.outlier[i] ? length : null));
    this.excluded = lengths.map((length, i) => (!steps.analyzed[i] && !steps.outlier[i] ? length : null));
    const axis = axisOf(mount);
    const value = (_: uPlot, v: number | null) => (v === null ? '–' : time(v));
    const dots = (label: string, color: Color, size: number): uPlot.Series => {
      const stroke = ink(mount, color);
      return { label, stroke, value, paths: () => null, points: { show: true, size, fill: stroke, stroke } };
    };
    const { unit } = picture;
    this.longest = lengths.reduce((most, length) => Math.max(most, length), 0);
    this.plot = new uPlot(
      {
        width: Math.max(200, mount.clientWidth),
        height: HEIGHT,
        cursor: { drag: { x: false, y: false } },
        scales: { x: { time: false, range: [0.5, lengths.length + 0.5] }, y: { range: [0, 1.1 * this.longest] } },
        axes: [
          { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000], values: (_, all) => all.map((n) => `${unit} ${n}`) },
          { ...axis, size: 74, values: (_, all) => all.map((ns) => time(ns)) },
        ],
        series: [
          { label: unit },
          dots('analyzed', 'compute', 7),
          dots('outlier', 'mark', 9),
          dots('excluded', 'faint', 6),
          { label: 'median of analyzed', stroke: ink(mount, 'text'), dash: [6, 4], width: 1, points: { show: false }, value },
        ],
      },
      [this.numbers, this.usual, this.outliers, this.excluded, this.numbers.map(() => this.median)],
      mount,
    );
    keepUp(this.plot, mount, () => mount.clientWidth);
    this.plot.over.addEventListener('click', () => {
      const at = this.plot.cursor.idx;
      if (at !== null && at !== undefined) onStep(steps.start[at], steps.end[at]);
    });
  }

  still(width: number): SVGSVGElement {
    const surface = new SvgSurface(width, HEIGHT, 'Duration of each step');
    const left = 74;
    const { longest } = this;
    const x = (n: number) => left + ((n - 0.5) / this.numbers.length) * (width - left - 10);
    const y = (ns: number) => HEIGHT - 22 - (ns / (1.1 * longest)) * (HEIGHT - 34);
    surface.line([[left, y(0)], [width - 10, y(0)]], 'line', 1, false);
    surface.line([[left, y(this.median)], [width - 10, y(this.median)]], 'text', 1, true);
    surface.text(left - 6, y(this.median), time(this.median), 'text', 'end');
    const all = [
      [this.usual, 'compute'],
      [this.outliers, 'mark'],
      [this.excluded, 'faint'],
    ] as const;
    for (const [values, color] of all) {
      values.forEach((ns, i) => {
        if (ns !== null) surface.mark(x(i + 1), y(ns), 3, 'circle', color, 0.9);
      });
    }
    surface.text(left, HEIGHT - 8, `${this.numbers.length} ${this.picture.unit}s; dashed: median of those analyzed`, 'faint', 'start');
    return surface.element;
  }
}

export const stepsChart: Chart = ({ mount, picture, timeline }) => {
  if (picture.steps.start.length < 2) return [];
  return [new Steps(mount, picture, (from, to) => timeline.show({ from, to }))];
};
