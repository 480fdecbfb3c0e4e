// The time axis of every chart on the timeline's scale.

import type { Surface } from '../surface';
import { at } from '../words';
import { type Scale, ticks } from './view';

/** Draws a line from `top` to `bottom` for each round time, labeled at the top unless another chart above it is. */
export function drawTicks(surface: Surface, scale: Scale, top: number, bottom: number, isLabeled = true): void {
  const { at: times, step } = ticks(scale, 110);
  for (const time of times) {
    const x = scale.x(time);
    if (x < scale.left) continue;
    surface.line([[x, top], [x, bottom]], 'line', 1, false);
    if (isLabeled) surface.text(x + 3, 9, at(time, step), 'faint', 'start');
  }
}
