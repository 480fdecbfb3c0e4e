// One step before and after a change, on one scale, to flip between the two.

import { Canvas } from './canvas';
import type { Chart } from './chart';
import type { Group, Picture, Predicted } from './picture';
import { type Surface, SvgSurface } from './surface';
import { drawTicks } from './timeline/axis';
import { drawRow } from './timeline/draw';
import type { RowLine } from './timeline/layout';
import { Scale } from './timeline/view';
import { time } from './words';

const AXIS = 20;
const ROW = 20;
const GAP = 3;

type Side = 'before' | 'after';

class Flip {
  private readonly canvas: Canvas;
  private readonly buttons: readonly HTMLButtonElement[];
  private side: Side = 'before';

  constructor(
    mount: HTMLElement,
    private readonly picture: Picture,
    private readonly predicted: Predicted,
    private readonly sides: Readonly<Record<Side, Group>>,
  ) {
    const bar = document.createElement('div');
    bar.className = 'buttons';
    bar.setAttribute('role', 'group');
    bar.setAttribute('aria-label', `One ${picture.unit}, before and after`);
    const button = (side: Side, text: string) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.dataset['side'] = side;
      button.textContent = text;
      button.addEventListener('click', () => this.show(side));
      bar.append(button);
      return button;
    };
    this.buttons = [
      button('before', `Recorded: ${time(predicted.before)}`),
      button('after', `Predicted with ${predicted.change}: ${time(predicted.after)}`),
    ];
    mount.append(bar);
    this.canvas = new Canvas(mount, '', (surface) => this.draw(surface, this.canvas.width, this.side), () => this.height());
    this.canvas.element.addEventListener('click', () => this.show(this.side === 'before' ? 'after' : 'before'));
    this.show('before');
  }

  private show(side: Side): void {
    this.side = side;
    for (const button of this.buttons) button.setAttribute('aria-pressed', String(button.dataset['side'] === side));
    const { before, after, change } = this.predicted;
    const what = side === 'before' ? `as recorded, ${time(before)}` : `predicted with ${change}, ${time(after)}`;
    this.canvas.element.setAttribute('aria-label', `The lanes of one ${this.picture.unit}, ${what}`);
    this.canvas.element.dataset['side'] = side;
    this.canvas.redraw();
  }

  /** Lanes of either side, so that nothing moves when it is flipped. */
  private sorts(): string[] {
    const of = (side: Side) => this.sides[side].lanes.filter((lane) => lane.sort !== 'idle').map((lane) => lane.sort);
    return [...new Set([...of('before'), ...of('after')])];
  }

  private rowsOf(sort: string): number {
    const rows = (side: Side) => this.sides[side].lanes.find((lane) => lane.sort === sort)?.rows.length ?? 0;
    return Math.max(rows('before'), rows('after'));
  }

  private height(): number {
    return AXIS + this.sorts().reduce((sum, sort) => sum + this.rowsOf(sort) * (ROW + 1) + GAP, 0) + 4;
  }

  private draw(surface: Surface, width: number, side: Side): void {
    const { from, before, after } = this.predicted;
    const left = width < 600 ? 84 : 150;
    // Times count from the beginning of the step.
    const scale = new Scale({ from: 0, to: 1.02 * Math.max(before, after) }, left, width);
    const run = { picture: this.picture, offset: -from };
    const height = this.height();
    drawTicks(surface, scale, AXIS - 6, height);
    let y = AXIS;
    for (const sort of this.sorts()) {
      const lane = this.sides[side].lanes.find((lane) => lane.sort === sort);
      lane?.rows.forEach((row, i) => {
        const line: RowLine = { kind: 'row', y: y + i * (ROW + 1), height: ROW, run, group: this.sides[side], lane, row, title: '' };
        drawRow(surface, line, scale);
      });
      const title = (lane ?? this.sides[side === 'before' ? 'after' : 'before'].lanes.find((lane) => lane.sort === sort))?.title ?? '';
      surface.text(left - 6, y + ROW / 2, title, 'text', 'end');
      y += this.rowsOf(sort) * (ROW + 1) + GAP;
    }
    this.end(surface, scale, height, side);
  }

  /** What follows the step is another one. */
  private end(surface: Surface, scale: Scale, height: number, side: Side): void {
    const x = scale.x(side === 'before' ? this.predicted.before : this.predicted.after);
    surface.rect(x, AXIS, scale.right - x, height - AXIS, 'paper', 0.75);
    surface.line([[x, AXIS - 8], [x, height]], 'text', 1.5, true);
  }

  still(width: number): SVGSVGElement {
    const height = this.height();
    const surface = new SvgSurface(width, height, `One ${this.picture.unit} as predicted`);
    this.draw(surface, width, 'after');
    return surface.element;
  }
}

export const flipChart: Chart = ({ mount, picture }) => {
  const before = picture.groups.find((group) => group.of === 'device');
  const after = picture.groups.find((group) => group.of === 'predicted');
  if (!picture.predicted || !before || !after) return [];
  return [new Flip(mount, picture, picture.predicted, { before, after })];
};
