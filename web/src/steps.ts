// How long was each step? Outliers are named; steps excluded from the analysis are pale.

import { Canvas } from './canvas';
import type { Chart } from './chart';
import type { Picture } from './picture';
import { type Surface, SvgSurface } from './surface';
import type { Timeline } from './timeline/timeline';
import { around, hideTooltip, showTooltip } from './tooltip';
import { time } from './words';

const HEIGHT = 170;
const LEFT = 74;
const RIGHT = 112;
const TOP = 20;
const BOTTOM = 24;

class StepsChart {
  private readonly canvas: Canvas;
  private readonly lengths: readonly number[];
  private readonly median: number;
  private readonly longest: number;
  private current: number | null = null;

  constructor(
    mount: HTMLElement,
    private readonly picture: Picture,
    private readonly timeline: Timeline,
  ) {
    const { steps } = picture;
    this.lengths = Array.from(steps.start, (start, i) => steps.end[i] - start);
    const analyzed = this.lengths.filter((_, i) => steps.analyzed[i]).sort((a, b) => a - b);
    this.median = ((analyzed[(analyzed.length - 1) >> 1] ?? 0) + (analyzed[analyzed.length >> 1] ?? 0)) / 2;
    this.longest = this.lengths.reduce((most, length) => Math.max(most, length), 1);
    const label = `Duration of ${this.lengths.length} ${picture.unit}s; median of those analyzed: ${time(this.median)}`;
    this.canvas = new Canvas(mount, label, (surface) => this.draw(surface, this.canvas.width), () => HEIGHT);
    timeline.onChange(() => this.canvas.redraw());
    this.listen(this.canvas.element);
  }

  private x(step: number, width: number): number {
    return LEFT + ((step + 0.5) / this.lengths.length) * (width - LEFT - RIGHT);
  }

  private y(ns: number): number {
    return HEIGHT - BOTTOM - (ns / this.longest) * (HEIGHT - TOP - BOTTOM);
  }

  private name(step: number): string {
    return `${this.picture.unit} ${this.picture.steps.number[step]}`;
  }

  private draw(surface: Surface, width: number): void {
    const { steps } = this.picture;
    const each = (width - LEFT - RIGHT) / this.lengths.length;
    const bar = Math.max(1, Math.min(40, 0.7 * each));
    this.visible(surface, width, each);
    surface.line([[LEFT, this.y(0)], [width - RIGHT, this.y(0)]], 'line', 1, false);
    this.lengths.forEach((ns, i) => {
      const color = steps.outlier[i] ? 'mark' : steps.analyzed[i] ? 'host' : 'line';
      surface.rect(this.x(i, width) - bar / 2, this.y(ns), bar, this.y(0) - this.y(ns), color, i === this.current ? 1 : 0.85);
    });
    surface.line([[LEFT, this.y(this.median)], [width - RIGHT, this.y(this.median)]], 'text', 1, true);
    surface.text(width - RIGHT + 6, this.y(this.median), `median ${time(this.median)}`, 'text', 'start');
    surface.text(LEFT - 6, this.y(this.longest), time(this.longest), 'faint', 'end');
    surface.text(LEFT - 6, this.y(0), '0', 'faint', 'end');
    this.names(surface, width, each);
  }

  /** The steps that the timeline shows. */
  private visible(surface: Surface, width: number, each: number): void {
    const { steps } = this.picture;
    const { offset } = this.timeline.runs[0];
    const { from, to } = this.timeline.view;
    const isVisible = (i: number) => steps.end[i] + offset > from && steps.start[i] + offset < to;
    const seen = this.lengths.map((_, i) => i).filter(isVisible);
    if (seen.length === 0 || seen.length === this.lengths.length) return;
    const left = this.x(seen[0], width) - each / 2;
    surface.rect(left, TOP - 6, this.x(seen[seen.length - 1], width) + each / 2 - left, HEIGHT - TOP - BOTTOM + 6, 'shade', 1);
  }

  /** Outliers are named above their bars, others below where there is room. */
  private names(surface: Surface, width: number, each: number): void {
    const { steps } = this.picture;
    let labeled = -Infinity;
    for (let i = 0; i < this.lengths.length; i++) {
      if (!steps.outlier[i]) continue;
      const x = this.x(i, width);
      if (x - labeled < 60) continue;
      surface.text(x, this.y(this.lengths[i]) - 8, this.name(i), 'mark', 'middle');
      labeled = x;
    }
    const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].find((n) => n * each > 64) ?? this.lengths.length;
    for (let i = 0; i < this.lengths.length; i += apart) surface.text(this.x(i, width), HEIGHT - BOTTOM + 12, this.name(i), 'faint', 'middle');
  }

  private select(step: number | null): void {
    this.current = step;
    this.timeline.pointStep(step);
    this.canvas.redraw();
  }

  private show(step: number): void {
    const { steps } = this.picture;
    const { offset } = this.timeline.runs[0];
    this.timeline.show({ from: steps.start[step] + offset, to: steps.end[step] + offset });
  }

  private describe(step: number): string[] {
    const { steps } = this.picture;
    const kind = steps.outlier[step] ? 'outlier' : steps.analyzed[step] ? 'analyzed' : 'excluded from the figures';
    return [`${this.name(step)}: ${time(this.lengths[step])}`, `${kind}; median ${time(this.median)}`, 'Click to see it in the timeline.'];
  }

  private listen(element: HTMLCanvasElement): void {
    const at = (event: MouseEvent) => {
      const x = event.clientX - element.getBoundingClientRect().left;
      const step = Math.floor(((x - LEFT) / (this.canvas.width - LEFT - RIGHT)) * this.lengths.length);
      return step >= 0 && step < this.lengths.length ? step : null;
    };
    element.tabIndex = 0;
    element.setAttribute('role', 'application');
    element.addEventListener('pointermove', (event) => {
      const step = at(event);
      this.select(step);
      if (step === null) hideTooltip();
      else showTooltip(this.describe(step), event.clientX, around(event.clientY));
    });
    element.addEventListener('pointerleave', () => {
      hideTooltip();
      this.select(null);
    });
    element.addEventListener('click', (event) => {
      const step = at(event);
      hideTooltip();
      if (step !== null) this.show(step);
    });
    element.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by !== undefined) this.select(Math.min(Math.max((this.current ?? (by > 0 ? -1 : this.lengths.length)) + by, 0), this.lengths.length - 1));
      else if (event.key === 'Enter' && this.current !== null) this.show(this.current);
      else return;
      event.preventDefault();
      const { left, top } = element.getBoundingClientRect();
      if (this.current !== null) showTooltip(this.describe(this.current), left + this.x(this.current, this.canvas.width), { top, bottom: top + HEIGHT });
    });
    element.addEventListener('blur', () => {
      hideTooltip();
      this.select(null);
    });
  }

  still(width: number): SVGSVGElement {
    const surface = new SvgSurface(width, HEIGHT, 'Duration of each step');
    this.draw(surface, width);
    return surface.element;
  }
}

export const stepsChart: Chart = ({ mount, picture, timeline }) => [new StepsChart(mount, picture, timeline)];
