// What every uPlot chart needs: colors from the style sheet, also after they change, and the width of its container.

import type uPlot from 'uplot';

import type { Color } from './surface';

/** A color as a function, which uPlot calls each time it draws. */
export function ink(mount: HTMLElement, color: Color, alpha = ''): () => string {
  return () => `${getComputedStyle(mount).getPropertyValue(`--${color}`).trim()}${alpha}`;
}

export function axisOf(mount: HTMLElement): uPlot.Axis {
  const line = { stroke: ink(mount, 'line'), width: 1 };
  return { stroke: ink(mount, 'text'), grid: line, ticks: line };
}

/** Redraws when the container is resized or the colors change. */
export function keepUp(plot: uPlot, mount: HTMLElement, width: () => number, after: () => void = () => {}): void {
  const { height } = plot;
  new ResizeObserver(() => {
    plot.setSize({ width: Math.max(200, width()), height });
    after();
  }).observe(mount);
  const redraw = () => plot.redraw(false);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  document.addEventListener('busbound-theme', redraw);
}
