// The timeline: what it shows, what is selected in it, and what other charts share with it.

import { Canvas } from '../canvas';
import type { Picture, Row } from '../picture';
import { type Surface, SvgSurface } from '../surface';
import { hideTooltip, showTooltip } from '../tooltip';
import { count } from '../words';
import { callOf, type Place, workOf } from './calls';
import { type Chosen, drawTimeline, type Scene } from './draw';
import { Found } from './found';
import { listenToKeys } from './keys';
import { computeLayout, initiallyFolded, keyOf, type Layout, type Line, type Run, type TitleLine } from './layout';
import { drawCursor } from './overlay';
import { describe, nearest, neighbor, pieceAt } from './pieces';
import { listenToPointers } from './pointers';
import { measured } from './range';
import { Tools } from './tools';
import { clamped, moved, Scale, type View, zoomed } from './view';

/** Called with the segment that a pointer or the selection is on, or `null`. */
export type Pointed = (row: Row | null, piece: number) => void;

const NOTHING = 'Nothing selected: click a segment, or press ↓ and n.';

export class Timeline {
  readonly runs: readonly Run[];
  /** Where lanes begin; other charts on the same scale align with it. */
  left = 150;
  private readonly all: View;
  private readonly analyzed: View;
  private readonly folded: Set<string>;
  private readonly canvas: Canvas;
  private readonly tools: Tools;
  private readonly details = document.createElement('div');
  private readonly changed: (() => void)[] = [];
  private readonly cursorMoved: (() => void)[] = [];
  private readonly pointedAt: Pointed[] = [];
  private layout: Layout;
  private view_: View;
  private finding: number | null = null;
  private chosen: Chosen | null = null;
  private pointed: Chosen | null = null;
  private cursor: number | null = null;
  private step: number | null = null;
  private range: View | null = null;
  private found: Found | null = null;
  private hasPath = false;
  private launches: { call: Place; work: Place }[] = [];
  /** The time to keep when the lane changes. */
  private anchor: number | null = null;

  constructor(mount: HTMLElement, pictures: readonly Picture[]) {
    // Time counts from the first analyzed step of each run.
    this.runs = pictures.map((picture) => ({ picture, offset: -picture.analyzed[0] }));
    this.all = {
      from: Math.min(...this.runs.map(({ offset }) => offset)),
      to: Math.max(1, ...this.runs.map(({ picture, offset }) => picture.span + offset)),
    };
    this.analyzed = { from: 0, to: Math.max(1, ...this.runs.map(({ picture, offset }) => picture.analyzed[1] + offset)) };
    this.view_ = this.initialView();
    this.folded = initiallyFolded(this.runs);
    this.layout = computeLayout(this.runs, this.folded);
    this.tools = new Tools(mount, this, pictures.some((picture) => picture.path.start.length > 0));
    this.canvas = new Canvas(
      mount,
      'Timeline of the devices and the host',
      (surface) => {
        drawTimeline(surface, this.scene(this.canvas.width));
        this.publish();
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
    const [{ picture, offset }] = this.runs;
    const { steps } = picture;
    const first = steps.analyzed.indexOf(true);
    if (this.runs.length > 1 || first < 0 || steps.analyzed.filter(Boolean).length <= 4) return clamped(this.analyzed, this.all);
    const third = Math.min(first + 2, steps.end.length - 1);
    const span = steps.end[third] - steps.start[first];
    return clamped({ from: Math.max(from, steps.start[first] + offset - 0.02 * span), to: Math.min(to, steps.end[third] + offset + 0.02 * span) }, this.all);
  }

  /** For tests: what is shown. */
  private publish(): void {
    const { dataset } = this.canvas.element;
    [dataset['from'], dataset['to']] = [String(this.view_.from), String(this.view_.to)];
    dataset['path'] = String(this.hasPath);
    dataset['launches'] = String(this.launches.length);
    dataset['pointed'] = this.pointed ? `${this.pointed.line.lane.sort}/${this.pointed.piece}` : '';
  }

  get view(): View {
    return this.view_;
  }

  get scale(): Scale {
    return new Scale(this.view_, this.left, this.canvas.width);
  }

  /** Called when the visible range changes. */
  onChange(listener: () => void): void {
    this.changed.push(listener);
  }

  /** Called when the pointer's time changes. */
  onCursor(listener: () => void): void {
    this.cursorMoved.push(listener);
  }

  onPoint(listener: Pointed): void {
    this.pointedAt.push(listener);
  }

  show(view: View): void {
    hideTooltip();
    this.view_ = clamped(view, this.all);
    this.canvas.redraw();
    for (const listener of this.changed) listener();
  }

  showAnalyzed(): void {
    this.show(this.analyzed);
  }

  showAll(): void {
    this.show(this.all);
  }

  pan(share: number): void {
    this.show(moved(this.view_, share * (this.view_.to - this.view_.from)));
  }

  zoom(factor: number): void {
    this.show(zoomed(this.view_, factor, (this.view_.from + this.view_.to) / 2));
  }

  /** Highlights a segment, and the time of a pointer in another chart. */
  point(at: { readonly row: Row; readonly piece: number } | null, cursor: number | null): void {
    const line = at ? this.layout.byRow.get(at.row) : undefined;
    this.pointed = at && line ? { line, piece: at.piece } : null;
    this.cursor = cursor;
    for (const listener of this.cursorMoved) listener();
    this.canvas.redraw();
  }

  pointStep(step: number | null): void {
    this.step = step;
    this.canvas.redraw();
  }

  drawCursor(surface: Surface, scale: Scale, top: number, bottom: number): void {
    drawCursor(surface, this.cursor, scale, top, bottom);
  }

  /** Marks a finding and brings its first occurrence into view. */
  showFinding(finding: number): void {
    this.mark(this.finding === finding ? null : finding);
    const [{ picture, offset }] = this.runs;
    const spans = picture.findings[finding];
    if (this.finding === null || !spans || spans.start.length === 0) return;
    const { steps } = picture;
    const inStep = steps.end.findIndex((end) => end > spans.start[0]);
    const from = inStep >= 0 ? Math.min(steps.start[inStep], spans.start[0]) : spans.start[0];
    const to = inStep >= 0 ? Math.max(steps.end[inStep], spans.end[0]) : spans.end[Math.min(3, spans.end.length - 1)];
    const margin = 0.04 * (to - from);
    this.show({ from: from + offset - margin, to: to + offset + margin });
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
    this.reveal(0, row);
    const line = this.layout.byRow.get(row);
    if (!line) return;
    this.choose({ line, piece });
    this.fill();
  }

  /** Unfolds the group of a row. */
  private reveal(run: number, row: Row): void {
    const group = this.runs[run].picture.groups.findIndex(({ lanes }) => lanes.some((lane) => lane.rows.includes(row)));
    if (this.folded.delete(keyOf(run, group))) this.updateLayout();
  }

  find(query: string): void {
    this.found = query ? new Found(this.runs, query) : null;
    if (!this.found) this.tools.showFound('');
    else if (this.found.total === 0) this.tools.showFound('no match');
    else this.tools.showFound(count(this.found.total));
    this.canvas.redraw();
  }

  /** Goes to the next or previous match. */
  next(by: 1 | -1): void {
    if (!this.found || this.found.total === 0) return;
    const { chosen, found } = this;
    const from = chosen ? { run: this.runs.indexOf(chosen.line.run), row: chosen.line.row, piece: chosen.piece } : null;
    const now = this.anchor ?? (by === 1 ? this.view_.from : this.view_.to);
    // After the last match comes the first.
    const match = found.next(now, from, by) ?? found.next(by === 1 ? -Infinity : Infinity, null, by);
    if (!match) return;
    this.reveal(match.run, match.row);
    const line = this.layout.byRow.get(match.row);
    if (!line) return;
    this.choose({ line, piece: match.piece });
    this.follow();
    this.tools.showFound(`${count(found.rank(match))} of ${count(found.total)}`);
  }

  togglePath(): void {
    this.hasPath = !this.hasPath && this.runs.some(({ picture }) => picture.path.start.length > 0);
    this.tools.showPath(this.hasPath);
    this.canvas.redraw();
  }

  search(): void {
    this.tools.input.focus();
  }

  still(width: number): SVGSVGElement {
    const surface = new SvgSurface(width, this.layout.height, 'Timeline of the devices and the host');
    drawTimeline(surface, { ...this.scene(width), cursor: null, pointed: null, step: null });
    return surface.element;
  }

  private scene(width: number): Scene {
    const { layout, runs, finding, chosen, pointed, cursor, step, found, range, hasPath, launches } = this;
    const scale = new Scale(this.view_, this.left, width);
    return { layout, runs, finding, chosen, pointed, cursor, step, found, range, hasPath, launches, width, scale };
  }

  private choose(chosen: Chosen | null): void {
    this.chosen = chosen;
    this.anchor = chosen ? chosen.line.row.start[chosen.piece] + chosen.line.run.offset : null;
    this.launches = chosen ? launchesOf(chosen) : [];
    this.showDetails();
    this.canvas.redraw();
    this.announce(chosen);
  }

  private announce(pointed: Chosen | null): void {
    for (const listener of this.pointedAt) listener(pointed?.line.row ?? null, pointed?.piece ?? 0);
  }

  /** From a call to its first work, or from work to its call. */
  goToLaunch(): void {
    const [first] = this.launches;
    if (!first || !this.chosen) return;
    const { row, piece } = this.chosen.line.group.of === 'thread' ? first.work : first.call;
    this.reveal(this.runs.indexOf(this.chosen.line.run), row);
    const line = this.layout.byRow.get(row);
    if (!line) return;
    this.choose({ line, piece });
    this.follow();
  }

  /** Measures a range, or the selected segment. */
  measure(range: View | null = this.chosen ? spanOf(this.chosen) : null): void {
    this.range = range && range.to > range.from ? range : null;
    this.showDetails();
    this.canvas.redraw();
  }

  /** Zooms to the selected segment or range, or to the analyzed steps. */
  fill(): void {
    const span = this.chosen ? spanOf(this.chosen) : this.range;
    if (!span) {
      this.showAnalyzed();
      return;
    }
    const margin = Math.max(10, 0.15 * (span.to - span.from));
    this.show({ from: span.from - margin, to: span.to + margin });
  }

  private showDetails(): void {
    const ofRange = this.range ? measured(this.runs, this.range) : [];
    const ofChosen = this.chosen ? [...describe(this.chosen), ...this.aboutLaunches()] : [];
    const part = (text: string, tag: 'b' | 'span') => {
      const part = document.createElement(tag);
      part.textContent = text;
      return part;
    };
    const lines = [ofRange, ofChosen].flatMap((lines) => lines.map((text, i) => part(text, i === 0 ? 'b' : 'span')));
    this.details.replaceChildren(...(lines.length > 0 ? lines : [part(NOTHING, 'span')]));
  }

  private aboutLaunches(): string[] {
    if (this.launches.length === 0 || !this.chosen) return [];
    const { names } = this.chosen.line.run.picture;
    const [{ call, work }] = this.launches;
    if (this.chosen.line.group.of !== 'thread') return [`launched by ${names[call.row.name[call.piece]]} (g goes there)`];
    const number = this.launches.length;
    return [number === 1 ? `launched ${names[work.row.name[work.piece]]} (g goes there)` : `launched ${count(number)} GPU events or more (g goes to the first)`];
  }

  private listen(element: HTMLCanvasElement): void {
    element.tabIndex = 0;
    // The role `img` does not accept keys.
    element.setAttribute('role', 'application');
    listenToKeys(element, this);
    listenToPointers(element, {
      pan: (pixels) => this.show(moved(this.view_, pixels * this.scale.perPixel)),
      zoom: (factor, x) => this.show(zoomed(this.view_, factor, this.scale.time(x))),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.leave(),
      click: (x, y) => this.click(x, y),
      fill: (y) => {
        if (!this.titleAt(y)) this.fill();
      },
      measure: (a, b) => {
        const { scale } = this;
        this.measure({ from: scale.time(Math.max(scale.left, Math.min(a, b))), to: scale.time(Math.max(scale.left, a, b)) });
      },
    });
  }

  /** The tooltip is below or above the lane, never on it. */
  private hover(x: number, y: number): void {
    const under = pieceAt(this.layout, this.scale, x, y);
    this.pointed = under;
    this.cursor = x >= this.left ? this.scale.time(x) : null;
    this.announce(under ?? this.chosen);
    for (const listener of this.cursorMoved) listener();
    this.canvas.redraw();
    if (!under) {
      hideTooltip();
      return;
    }
    const { left, top } = this.canvas.element.getBoundingClientRect();
    const rows = this.layout.rows.filter((line) => line.lane === under.line.lane && line.run === under.line.run && line.group === under.line.group);
    const [first, last] = [rows[0], rows[rows.length - 1]];
    showTooltip(describe(under), left + x, { top: top + first.y, bottom: top + last.y + last.height });
  }

  private leave(): void {
    hideTooltip();
    this.announce(this.chosen);
    this.point(null, null);
  }

  private click(x: number, y: number): void {
    hideTooltip();
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
    this.pointed = null;
    this.canvas.resize();
  }

  /** Selects the next row at the same time: that of the segment last selected with `n`, `p` or the pointer. */
  selectLane(by: 1 | -1): void {
    const { rows } = this.layout;
    const now = this.chosen ? rows.findIndex((line) => line.row === this.chosen?.line.row) : by === 1 ? -1 : rows.length;
    const next = rows[now + by];
    if (!next) return;
    const at = this.anchor ?? (this.view_.from + this.view_.to) / 2;
    this.choose(nearest(next, at));
    this.anchor = at;
  }

  selectNeighbor(by: 1 | -1): void {
    if (this.chosen) this.choose(neighbor(this.chosen, by));
    else this.selectLane(1);
    this.follow();
  }

  /** Unfolds every group, or restores the initial folding. */
  foldAll(): void {
    const isOpen = this.folded.size === 0;
    this.folded.clear();
    if (isOpen) for (const key of initiallyFolded(this.runs)) this.folded.add(key);
    this.choose(null);
    this.updateLayout();
  }

  /** Clears the range, the selection and the marked finding. */
  clear(): void {
    hideTooltip();
    this.range = null;
    this.mark(null);
    this.choose(null);
  }

  /** Scrolls to the selected segment if it is out of view. */
  private follow(): void {
    if (!this.chosen) return;
    const { from: start } = spanOf(this.chosen);
    const { from, to } = this.view_;
    if (start < from || start > to) this.show(moved(this.view_, start - (from + to) / 2));
  }
}

/** A segment's time on the shared scale. */
function spanOf({ line, piece }: Chosen): View {
  return { from: line.row.start[piece] + line.run.offset, to: line.row.end[piece] + line.run.offset };
}

/** The call behind work, or the work behind a call; most of the work behind an operator. */
function launchesOf({ line, piece }: Chosen): { call: Place; work: Place }[] {
  const { run, group, row } = line;
  const here = { group, row, piece };
  if (group.of === 'device') {
    const call = callOf(run, row, piece);
    return call ? [{ call, work: here }] : [];
  }
  return group.of === 'thread' && row.count[piece] === 1 ? workOf(run, group, row, piece).map((work) => ({ call: here, work })) : [];
}
