// A canvas that fills its container, sharp on any screen, drawn at most once per frame.

import { CanvasSurface } from './surface';

export class Canvas {
  readonly element = document.createElement('canvas');
  width = 0;
  height = 0;
  private isScheduled = false;

  constructor(
    mount: HTMLElement,
    label: string,
    private readonly draw: (surface: CanvasSurface) => void,
    /** Height for a width. */
    private readonly heightFor: (width: number) => number,
  ) {
    this.element.setAttribute('role', 'img');
    this.element.setAttribute('aria-label', label);
    mount.append(this.element);
    new ResizeObserver(() => this.resize(mount)).observe(mount);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
    document.addEventListener('busbound-theme', () => this.redraw());
    this.resize(mount);
  }

  /** Call after the height of the content changes. */
  resize(mount: HTMLElement = this.element.parentElement as HTMLElement): void {
    this.width = Math.max(200, mount.clientWidth);
    this.height = this.heightFor(this.width);
    const ratio = devicePixelRatio || 1;
    this.element.width = Math.round(this.width * ratio);
    this.element.height = Math.round(this.height * ratio);
    this.element.style.height = `${this.height}px`;
    this.redraw();
  }

  redraw(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      const context = this.element.getContext('2d');
      if (!context) return;
      const ratio = devicePixelRatio || 1;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      this.draw(new CanvasSurface(context, getComputedStyle(this.element)));
    });
  }
}
