// The visible time range, and its mapping to pixels.

export interface View {
  /** Nanoseconds on the shared scale. */
  readonly from: number;
  readonly to: number;
}

/** The shortest view in nanoseconds, limited by the precision of numbers of that size. */
function least(all: View): number {
  return Math.max(20, 2 ** -42 * Math.max(Math.abs(all.from), Math.abs(all.to)));
}

/** The view, limited to the whole range plus a small margin. */
export function clamped({ from, to }: View, all: View): View {
  const margin = 0.01 * (all.to - all.from);
  const length = Math.min(Math.max(to - from, least(all)), all.to - all.from + 2 * margin);
  const start = Math.min(Math.max(from, all.from - margin), all.to + margin - length);
  return { from: start, to: start + length };
}

export function zoomed(view: View, factor: number, at: number): View {
  return { from: at - (at - view.from) * factor, to: at + (view.to - at) * factor };
}

export function moved(view: View, by: number): View {
  return { from: view.from + by, to: view.to + by };
}

/** Maps times to pixels between `left` and `right`. */
export class Scale {
  readonly perPixel: number;

  constructor(
    readonly view: View,
    readonly left: number,
    readonly right: number,
  ) {
    this.perPixel = (view.to - view.from) / Math.max(1, right - left);
  }

  x(time: number): number {
    return this.left + (time - this.view.from) / this.perPixel;
  }

  time(x: number): number {
    return this.view.from + (x - this.left) * this.perPixel;
  }
}

/** Round times for an axis, at most about one per `spacing` pixels. */
export function ticks(scale: Scale, spacing: number): { readonly at: readonly number[]; readonly step: number } {
  const least = scale.perPixel * spacing;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? 10 * power;
  const first = Math.ceil(scale.view.from / step);
  const number = Math.max(0, Math.floor(scale.view.to / step) - first + 1);
  return { at: Array.from({ length: Math.min(number, 1000) }, (_, i) => (first + i) * step), step };
}
