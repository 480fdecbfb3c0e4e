// The transfer roofline: every copy as a dot, size by bandwidth, below the link's peak and the curve of rates that a copy
// of that size can reach.

import { Canvas } from './canvas';
import type { Chart } from './chart';
import type { Curve, Kind, Picture } from './picture';
import { type Color, type Shape, type Surface, SvgSurface } from './surface';
import { hideTooltip, showTooltip } from './tooltip';
import { bytes, count, rate, time } from './words';

const LEFT = 74;
const RIGHT = 16;
const TOP = 14;
const BOTTOM = 34;

interface Look {
  readonly color: Color;
  readonly shape: Shape;
}

/** Shapes also show the direction, so the kinds can be distinguished without colors. */
function look(kind: Kind): Look {
  const shape: Shape = kind.to === 'device' ? 'circle' : kind.to === 'host' ? 'square' : 'triangle';
  if (kind.memory === 'pageable') return { color: 'pageable', shape };
  if (kind.to === 'other') return { color: 'other', shape };
  return { color: kind.to === 'device' ? 'h2d' : 'd2h', shape };
}

function curveColor(curve: Curve): Color {
  if (!curve.pinned) return 'pageable';
  return curve.toDevice ? 'h2d' : 'd2h';
}

class Roofline {
  private readonly canvas: Canvas;
  private readonly hidden = new Set<number>();
  private readonly sizes: [number, number];
  private readonly rates: [number, number];

  constructor(
    mount: HTMLElement,
    private readonly picture: Picture,
    private readonly onDot: (dot: number) => void,
  ) {
    const { dots } = picture;
    let [least, most, slowest, fastest] = [Infinity, 0, Infinity, picture.peak];
    for (let i = 0; i < dots.length; i++) {
      const gbps = dots.bytes[i] / dots.duration[i];
      least = Math.min(least, dots.bytes[i]);
      most = Math.max(most, dots.bytes[i]);
      slowest = Math.min(slowest, gbps);
      fastest = Math.max(fastest, gbps);
    }
    this.sizes = [Math.min(least, 1 << 12) / 1.5, Math.max(most, 1 << 24) * 1.5];
    this.rates = [Math.min(slowest, 0.5) / 1.4, fastest * 1.4];
    this.legend(mount);
    this.canvas = new Canvas(
      mount,
      `${count(dots.length)} copies: bandwidth by size`,
      (surface) => {
        const drawn = this.draw(surface, this.canvas.width, this.canvas.height);
        this.canvas.element.dataset['dots'] = String(drawn);
      },
      (width) => Math.min(460, Math.max(280, width * 0.5)),
    );
    this.listen(this.canvas.element);
  }

  private legend(mount: HTMLElement): void {
    const legend = document.createElement('div');
    legend.className = 'legend';
    const of = new Map<number, number>();
    const { dots, kinds } = this.picture;
    for (let i = 0; i < dots.length; i++) of.set(dots.kind[i], (of.get(dots.kind[i]) ?? 0) + dots.count[i]);
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
    for (const curve of this.picture.curves) {
      const item = document.createElement('span');
      const swatch = document.createElement('i');
      swatch.className = `swatch stroke ${curveColor(curve)}${curve.toDevice ? '' : ' dashed'}`;
      item.append(swatch, curve.label);
      legend.append(item);
    }
    mount.append(legend);
  }

  private x(size: number, width: number): number {
    const [least, most] = this.sizes;
    return LEFT + ((width - LEFT - RIGHT) * Math.log(size / least)) / Math.log(most / least);
  }

  private y(gbps: number, height: number): number {
    const [slowest, fastest] = this.rates;
    const share = Math.log(Math.max(gbps, slowest) / slowest) / Math.log(fastest / slowest);
    return height - BOTTOM - (height - TOP - BOTTOM) * share;
  }

  /** Draws everything; returns the number of copies that the dots represent. */
  private draw(surface: Surface, width: number, height: number): number {
    const { picture } = this;
    this.grid(surface, width, height);
    for (const curve of picture.curves) {
      const [least, most] = this.sizes;
      const points = curve.points
        .filter(([size]) => size >= least && size <= most)
        .map(([size, gbps]) => [this.x(size, width), this.y(gbps, height)] as const);
      surface.line(points, curveColor(curve), 1.3, !curve.toDevice);
    }
    if (picture.peak > 0) {
      const y = this.y(picture.peak, height);
      surface.line([[LEFT, y], [width - RIGHT, y]], 'text', 1.4, true);
      surface.text(LEFT + 6, y - 8, `${picture.link}: max ${rate(picture.peak)} per direction`, 'text', 'start');
    }
    const { dots, kinds } = picture;
    const looks = kinds.map(look);
    const alpha = dots.length > 5_000 ? 0.35 : 0.6;
    let drawn = 0;
    for (let i = 0; i < dots.length; i++) {
      const kind = dots.kind[i];
      if (this.hidden.has(kind)) continue;
      const size = Math.min(9, 3 + 0.7 * Math.log2(dots.count[i]));
      const gbps = dots.bytes[i] / dots.duration[i];
      surface.mark(this.x(dots.bytes[i], width), this.y(gbps, height), size, looks[kind].shape, looks[kind].color, alpha);
      drawn += dots.count[i];
    }
    return drawn;
  }

  private grid(surface: Surface, width: number, height: number): void {
    const [least, most] = this.sizes;
    const bottom = height - BOTTOM;
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    const spacing = width < 600 ? 4 : 2;
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
      surface.line([[LEFT, y], [width - RIGHT, y]], 'line', 1, false);
      surface.text(LEFT - 6, y, `${gbps} GB/s`, 'faint', 'end');
    }
    surface.text((LEFT + width - RIGHT) / 2, height - 8, 'copy size', 'faint', 'middle');
  }

  private dotAt(x: number, y: number): number | null {
    const { dots } = this.picture;
    let [best, nearest] = [-1, 100];
    for (let i = 0; i < dots.length; i++) {
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
      if (dot === null) return hideTooltip();
      const { dots, kinds } = this.picture;
      const lines = [
        `${kinds[dots.kind[dot]].label}: ${bytes(dots.bytes[dot])} at ${rate(dots.bytes[dot] / dots.duration[dot])}`,
        `${time(dots.duration[dot])}, from ${time(dots.start[dot])}`,
      ];
      if (dots.count[dot] > 1) lines.push(`and ${count(dots.count[dot] - 1)} similar copies`);
      if (!Number.isNaN(dots.row[dot])) lines.push('Click to see it in the timeline.');
      showTooltip(lines, event.clientX, event.clientY);
    });
    element.addEventListener('pointerleave', hideTooltip);
    element.addEventListener('click', (event) => {
      const dot = at(event);
      if (dot !== null) this.onDot(dot);
    });
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
  if (dots.length === 0) return [];
  const show = (dot: number) => {
    // Copies that did not fit into the timeline have no row.
    if (Number.isNaN(dots.row[dot])) return;
    timeline.showPiece(rows[dots.row[dot]], dots.piece[dot]);
    toTimeline();
  };
  return [new Roofline(mount, picture, show)];
};
