// Which stretch of time is seen, and where on the drawing it lies.

export interface View {
  /** Nanoseconds on the common scale. */
  readonly from: number;
  readonly to: number;
}

/** Nothing is shorter than this many nanoseconds. */
const LEAST = 20;

export function clamped({ from, to }: View, end: number): View {
  const margin = 0.01 * end;
  const length = Math.min(Math.max(to - from, LEAST), end + 2 * margin);
  const start = Math.min(Math.max(from, -margin), end + margin - length);
  return { from: start, to: start + length };
}

export function zoomed(view: View, factor: number, at: number): View {
  return { from: at - (at - view.from) * factor, to: at + (view.to - at) * factor };
}

export function moved(view: View, by: number): View {
  return { from: view.from + by, to: view.to + by };
}

/** Times as places between `left` and `right`. */
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

/** Round times for an axis, at most about one every `apart` pixels. */
export function ticks(scale: Scale, apart: number): number[] {
  const least = scale.perPixel * apart;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? 10 * power;
  const all: number[] = [];
  for (let at = Math.ceil(scale.view.from / step) * step; at <= scale.view.to; at += step) all.push(at);
  return all;
}
