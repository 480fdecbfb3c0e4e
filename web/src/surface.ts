// A drawing surface: a canvas for the screen, SVG for print. Colors are names of variables in the style sheet.

export type Color =
  | 'text'
  | 'faint'
  | 'line'
  | 'paper'
  | 'shade'
  | 'compute'
  | 'communication'
  | 'h2d'
  | 'd2h'
  | 'other'
  | 'idle'
  | 'host'
  | 'pageable'
  | 'mark'
  | 'link'
  | 'gain'
  | 'idle-copy'
  | 'idle-launch'
  | 'idle-sync'
  | 'idle-input'
  | 'idle-host'
  | 'idle-unknown';

export type Shape = 'circle' | 'square' | 'triangle';

export interface Surface {
  rect(x: number, y: number, width: number, height: number, color: Color, alpha: number): void;
  line(points: readonly (readonly [number, number])[], color: Color, width: number, dashed: boolean): void;
  text(x: number, y: number, text: string, color: Color, align: 'start' | 'middle' | 'end', bold?: boolean): void;
  mark(x: number, y: number, size: number, shape: Shape, color: Color, alpha: number): void;
}

export const FONT = '12px system-ui, sans-serif';

export class CanvasSurface implements Surface {
  private readonly colors = new Map<Color, string>();
  private filled: Color | null = null;
  private alpha = 1;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly style: CSSStyleDeclaration,
  ) {
    context.globalAlpha = 1;
    context.font = FONT;
    context.textBaseline = 'middle';
  }

  private color(color: Color): string {
    let value = this.colors.get(color);
    if (value === undefined) {
      value = this.style.getPropertyValue(`--${color}`).trim() || '#888';
      this.colors.set(color, value);
    }
    return value;
  }

  /** Sets the fill only if it differs: parsing a color costs more than filling a rectangle. */
  private fill(color: Color, alpha: number): void {
    const { context } = this;
    if (color !== this.filled) context.fillStyle = this.color(color);
    if (alpha !== this.alpha) context.globalAlpha = alpha;
    [this.filled, this.alpha] = [color, alpha];
  }

  rect(x: number, y: number, width: number, height: number, color: Color, alpha: number): void {
    this.fill(color, alpha);
    this.context.fillRect(x, y, width, height);
  }

  line(points: readonly (readonly [number, number])[], color: Color, width: number, dashed: boolean): void {
    const { context } = this;
    this.fill(this.filled ?? color, 1);
    context.strokeStyle = this.color(color);
    context.lineWidth = width;
    context.setLineDash(dashed ? [6, 4] : []);
    context.beginPath();
    for (const [i, [x, y]] of points.entries()) {
      if (i === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    context.stroke();
    context.setLineDash([]);
  }

  text(x: number, y: number, text: string, color: Color, align: 'start' | 'middle' | 'end', bold = false): void {
    const { context } = this;
    this.fill(color, 1);
    context.textAlign = align === 'middle' ? 'center' : align;
    context.font = bold ? `bold ${FONT}` : FONT;
    context.fillText(text, x, y);
  }

  mark(x: number, y: number, size: number, shape: Shape, color: Color, alpha: number): void {
    const { context } = this;
    this.fill(color, alpha);
    context.beginPath();
    if (shape === 'circle') context.arc(x, y, size, 0, 2 * Math.PI);
    else if (shape === 'square') context.rect(x - size, y - size, 2 * size, 2 * size);
    else {
      context.moveTo(x, y - 1.2 * size);
      context.lineTo(x + 1.1 * size, y + size);
      context.lineTo(x - 1.1 * size, y + size);
    }
    context.fill();
  }
}

const SVG = 'http://www.w3.org/2000/svg';

export class SvgSurface implements Surface {
  readonly element: SVGSVGElement;

  constructor(width: number, height: number, label: string) {
    this.element = document.createElementNS(SVG, 'svg');
    this.element.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.element.setAttribute('class', 'still');
    this.element.setAttribute('role', 'img');
    this.element.setAttribute('aria-label', label);
  }

  private add(name: string, attributes: Record<string, string>): SVGElement {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    this.element.append(element);
    return element;
  }

  rect(x: number, y: number, width: number, height: number, color: Color, alpha: number): void {
    this.add('rect', {
      x: x.toFixed(1),
      y: y.toFixed(1),
      width: width.toFixed(1),
      height: height.toFixed(1),
      style: `fill:var(--${color})`,
      'fill-opacity': alpha.toFixed(2),
    });
  }

  line(points: readonly (readonly [number, number])[], color: Color, width: number, dashed: boolean): void {
    this.add('polyline', {
      points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' '),
      style: `stroke:var(--${color});fill:none`,
      'stroke-width': String(width),
      ...(dashed ? { 'stroke-dasharray': '6 4' } : {}),
    });
  }

  text(x: number, y: number, text: string, color: Color, align: 'start' | 'middle' | 'end', bold = false): void {
    const element = this.add('text', {
      x: x.toFixed(1),
      y: (y + 4).toFixed(1),
      'text-anchor': align,
      style: `fill:var(--${color})`,
      ...(bold ? { 'font-weight': 'bold' } : {}),
    });
    element.textContent = text;
  }

  mark(x: number, y: number, size: number, shape: Shape, color: Color, alpha: number): void {
    const style = { class: 'mark', style: `fill:var(--${color})`, 'fill-opacity': alpha.toFixed(2) };
    if (shape === 'circle') this.add('circle', { cx: x.toFixed(1), cy: y.toFixed(1), r: String(size), ...style });
    else if (shape === 'square') {
      const side = String(2 * size);
      this.add('rect', { x: (x - size).toFixed(1), y: (y - size).toFixed(1), width: side, height: side, ...style });
    } else {
      const points = `${x},${y - 1.2 * size} ${x + 1.1 * size},${y + size} ${x - 1.1 * size},${y + size}`;
      this.add('polygon', { points, ...style });
    }
  }
}
