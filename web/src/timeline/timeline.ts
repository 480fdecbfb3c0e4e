// The timeline: pan, zoom and select events with the mouse, touch or the keyboard.

import { Canvas } from '../canvas';
import type { Picture, Row } from '../picture';
import { SvgSurface } from '../surface';
import { hideTooltip, showTooltip } from '../tooltip';
import { type Chosen, drawTimeline, type Scene } from './draw';
import { computeLayout, initiallyFolded, keyOf, type Layout, type Line, type Run, type TitleLine } from './layout';
import { describe, nearest, neighbor, pieceAt } from './pieces';
import { clamped, moved, Scale, type View, zoomed } from './view';

export class Timeline {
  readonly runs: readonly Run[];
  /** Where lanes begin; other charts on the same scale align with it. */
  left = 150;
  private readonly all: View;
  private readonly analyzed: View;
  private readonly folded: Set<string>;
  private readonly canvas: Canvas;
  private readonly details = document.createElement('div');
  private readonly listeners: (() => void)[] = [];
  private layout: Layout;
  private view_: View;
  private finding: number | null = null;
  private chosen: Chosen | null = null;
  /** The time to keep when the lane changes. */
  private anchor: number | null = null;

  constructor(mount: HTMLElement, pictures: readonly Picture[]) {
    // A single run keeps its own time; several are aligned at their first analyzed step.
    const aligned = pictures.length > 1;
    this.runs = pictures.map((picture) => ({ picture, offset: aligned ? -picture.analyzed[0] : 0 }));
    this.all = {
      from: Math.min(...this.runs.map(({ offset }) => offset)),
      to: Math.max(1, ...this.runs.map(({ picture, offset }) => picture.span + offset)),
    };
    const [first] = this.runs;
    const last = Math.max(...this.runs.map(({ picture, offset }) => picture.analyzed[1] + offset));
    this.analyzed = { from: aligned ? 0 : first.picture.analyzed[0], to: last };
    this.view_ = this.initialView();
    this.folded = initiallyFolded(this.runs);
    this.layout = computeLayout(this.runs, this.folded);
    this.canvas = new Canvas(
      mount,
      'Timeline of the devices and the host',
      (surface) => {
        drawTimeline(surface, this.scene(this.canvas.width));
        const { dataset } = this.canvas.element;
        [dataset['from'], dataset['to']] = [String(this.view_.from), String(this.view_.to)];
      },
      (width) => {
        this.left = width < 600 ? 84 : 150;
        return this.layout.height;
      },
    );
    this.details.className = 'details';
    this.details.setAttribute('aria-live', 'polite');
    mount.append(this.details);
    this.listen(this.canvas.element);
    this.showDetails();
  }

  /** Only the first steps if there are many, so that the parts of a step are visible immediately. */
  private initialView(): View {
    const { from, to } = this.analyzed;
    const { steps } = this.runs[0].picture;
    const first = steps.analyzed.indexOf(true);
    if (this.runs.length > 1 || first < 0 || steps.analyzed.filter(Boolean).length <= 4) return clamped(this.analyzed, this.all);
    const third = Math.min(first + 2, steps.end.length - 1);
    const span = steps.end[third] - steps.start[first];
    return clamped({ from: Math.max(from, steps.start[first] - 0.02 * span), to: Math.min(to, steps.end[third] + 0.02 * span) }, this.all);
  }

  get view(): View {
    return this.view_;
  }

  get scale(): Scale {
    return new Scale(this.view_, this.left, this.canvas.width);
  }

  get width(): number {
    return this.canvas.width;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  show(view: View): void {
    hideTooltip();
    this.view_ = clamped(view, this.all);
    this.canvas.redraw();
    for (const listener of this.listeners) listener();
  }

  /** Marks a finding and brings its first occurrence into view. */
  showFinding(finding: number): void {
    this.mark(this.finding === finding ? null : finding);
    const spans = this.runs[0].picture.findings[finding];
    if (this.finding !== null && spans && spans.start.length > 0) {
      const { steps } = this.runs[0].picture;
      const inStep = steps.end.findIndex((end) => end > spans.start[0]);
      const from = inStep >= 0 ? Math.min(steps.start[inStep], spans.start[0]) : spans.start[0];
      const to = inStep >= 0 ? Math.max(steps.end[inStep], spans.end[0]) : spans.end[Math.min(3, spans.end.length - 1)];
      const margin = 0.04 * (to - from);
      this.show({ from: from - margin, to: to + margin });
    }
  }

  private mark(finding: number | null): void {
    this.finding = finding;
    this.canvas.redraw();
    this.onMark(finding);
  }

  /** Called with the finding that is now marked. */
  onMark: (finding: number | null) => void = () => {};

  /** Brings a segment of the first run into view, and unfolds its group if needed. */
  showPiece(row: Row, piece: number): void {
    const group = this.runs[0].picture.groups.findIndex(({ lanes }) => lanes.some((lane) => lane.rows.includes(row)));
    if (this.folded.delete(keyOf(0, group))) this.updateLayout();
    const line = this.layout.rows.find((line) => line.row === row);
    if (!line) return;
    this.choose({ line, piece });
    this.fill();
  }

  still(width: number): SVGSVGElement {
    const surface = new SvgSurface(width, this.layout.height, 'Timeline of the devices and the host');
    drawTimeline(surface, this.scene(width));
    return surface.element;
  }

  private scene(width: number): Scene {
    const { layout, runs, finding, chosen } = this;
    return { layout, runs, finding, chosen, width, scale: new Scale(this.view_, this.left, width) };
  }

  private choose(chosen: Chosen | null): void {
    this.chosen = chosen;
    this.anchor = chosen ? chosen.line.row.start[chosen.piece] + chosen.line.run.offset : null;
    this.showDetails();
    this.canvas.redraw();
  }

  /** Zooms to the selected segment, or to the analyzed range. */
  private fill(): void {
    if (!this.chosen) {
      this.show(this.analyzed);
      return;
    }
    const { line, piece } = this.chosen;
    const start = line.row.start[piece] + line.run.offset;
    const end = line.row.end[piece] + line.run.offset;
    const margin = Math.max(10, 0.15 * (end - start));
    this.show({ from: start - margin, to: end + margin });
  }

  private showDetails(): void {
    const lines = this.chosen ? describe(this.chosen) : ['Nothing selected: click a segment, or press ↓ and n.'];
    this.details.replaceChildren(
      ...lines.map((text, i) => {
        const part = document.createElement(i === 0 && this.chosen ? 'b' : 'span');
        part.textContent = text;
        return part;
      }),
    );
  }

  private listen(element: HTMLCanvasElement): void {
    element.tabIndex = 0;
    // The role `img` does not accept keys.
    element.setAttribute('role', 'application');
    element.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.key(event.key)) return;
      event.preventDefault();
    });
    element.addEventListener(
      'wheel',
      (event) => {
        // The wheel scrolls the page unless the timeline has the focus or Ctrl is held.
        if (!event.ctrlKey && !event.metaKey && document.activeElement !== element && Math.abs(event.deltaX) < 1) return;
        event.preventDefault();
        const x = event.clientX - element.getBoundingClientRect().left;
        const { scale } = this;
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.show(moved(this.view_, event.deltaX * scale.perPixel));
        else this.show(zoomed(this.view_, 1.0015 ** event.deltaY, scale.time(x)));
      },
      { passive: false },
    );
    this.listenToPointers(element);
  }

  private listenToPointers(element: HTMLCanvasElement): void {
    const held = new Map<number, number>();
    let dragged = 0;
    element.addEventListener('pointerdown', (event) => {
      held.set(event.pointerId, event.clientX);
      dragged = 0;
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener('pointermove', (event) => {
      const { left, top } = element.getBoundingClientRect();
      const before = held.get(event.pointerId);
      if (before === undefined) {
        const under = pieceAt(this.layout, this.scale, event.clientX - left, event.clientY - top);
        if (under) showTooltip(describe(under), event.clientX, event.clientY);
        else hideTooltip();
        return;
      }
      hideTooltip();
      const { perPixel } = this.scale;
      if (held.size === 1) {
        dragged += Math.abs(event.clientX - before);
        this.show(moved(this.view_, (before - event.clientX) * perPixel));
      } else {
        // Two fingers: the time under the other finger stays in place.
        const other = [...held].find(([id]) => id !== event.pointerId)?.[1] ?? before;
        const factor = Math.abs(before - other) / Math.max(8, Math.abs(event.clientX - other));
        this.show(zoomed(this.view_, factor, this.scale.time(other - left)));
        dragged = 100;
      }
      held.set(event.pointerId, event.clientX);
    });
    const release = (event: PointerEvent) => {
      const wasHeld = held.delete(event.pointerId);
      if (!wasHeld || dragged > 4 || event.type !== 'pointerup') return;
      const { left, top } = element.getBoundingClientRect();
      this.click(event.clientX - left, event.clientY - top);
    };
    element.addEventListener('pointerup', release);
    element.addEventListener('pointercancel', release);
    element.addEventListener('pointerleave', hideTooltip);
    element.addEventListener('dblclick', (event) => {
      if (!this.titleAt(event.clientY - element.getBoundingClientRect().top)) this.fill();
    });
  }

  private click(x: number, y: number): void {
    const title = this.titleAt(y);
    if (title) {
      if (!this.folded.delete(title.key)) this.folded.add(title.key);
      this.choose(null);
      this.updateLayout();
      return;
    }
    this.choose(pieceAt(this.layout, this.scale, x, y));
  }

  private titleAt(y: number): TitleLine | undefined {
    const isThere = (line: Line): line is TitleLine => line.kind === 'title' && y >= line.y && y < line.y + line.height;
    return this.layout.lines.find(isThere);
  }

  /** Recomputes the layout after groups are folded or unfolded. */
  private updateLayout(): void {
    this.layout = computeLayout(this.runs, this.folded);
    this.canvas.resize();
  }

  private key(key: string): boolean {
    const { from, to } = this.view_;
    const middle = (from + to) / 2;
    switch (key) {
      case 'ArrowLeft':
        this.show(moved(this.view_, -0.15 * (to - from)));
        return true;
      case 'ArrowRight':
        this.show(moved(this.view_, 0.15 * (to - from)));
        return true;
      case '+':
      case '=':
        this.show(zoomed(this.view_, 0.6, middle));
        return true;
      case '-':
        this.show(zoomed(this.view_, 1 / 0.6, middle));
        return true;
      case '0':
        this.show(this.all);
        return true;
      case '1':
        this.show(this.analyzed);
        return true;
      case 'n':
      case 'p':
        if (this.chosen) this.choose(neighbor(this.chosen, key === 'n' ? 1 : -1));
        else this.lane(1);
        this.follow();
        return true;
      case 'ArrowDown':
        this.lane(1);
        return true;
      case 'ArrowUp':
        this.lane(-1);
        return true;
      case 'o':
        this.foldAll();
        return true;
      case 'f':
      case 'Enter':
        this.fill();
        return true;
      case 'Escape':
        this.mark(null);
        this.choose(null);
        // The wheel scrolls the page again.
        this.canvas.element.blur();
        return true;
      default:
        return false;
    }
  }

  /** Selects the next row at the same time: that of the segment last selected with `n`, `p` or the pointer. */
  private lane(by: 1 | -1): void {
    const { rows } = this.layout;
    const now = this.chosen ? rows.indexOf(this.chosen.line) : by === 1 ? -1 : rows.length;
    const next = rows[now + by];
    if (!next) return;
    const at = this.anchor ?? (this.view_.from + this.view_.to) / 2;
    this.choose(nearest(next, at));
    this.anchor = at;
  }

  /** Unfolds every group, or restores the initial folding. */
  private foldAll(): void {
    const isOpen = this.folded.size === 0;
    this.folded.clear();
    if (isOpen) for (const key of initiallyFolded(this.runs)) this.folded.add(key);
    this.choose(null);
    this.updateLayout();
  }

  /** Scrolls to the selected segment if it is out of view. */
  private follow(): void {
    if (!this.chosen) return;
    const { line, piece } = this.chosen;
    const start = line.row.start[piece] + line.run.offset;
    const { from, to } = this.view_;
    if (start < from || start > to) this.show(moved(this.view_, start - (from + to) / 2));
  }
}
