// Mouse, touch and wheel on the timeline. The wheel alone always scrolls the page.

import { AXIS } from './layout';

/** What pointers ask of the timeline; x and y are in pixels of the drawing. */
export interface Gestures {
  pan(pixels: number): void;
  /** Zooms so that the time at `x` stays in place. */
  zoom(factor: number, x: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  click(x: number, y: number): void;
  fill(y: number): void;
  /** Selects the time between two points. */
  measure(from: number, to: number): void;
}

export function listenToPointers(element: HTMLCanvasElement, gestures: Gestures): void {
  const held = new Map<number, number>();
  let dragged = 0;
  let measuredFrom: number | null = null;
  const at = (event: MouseEvent) => {
    const { left, top } = element.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top] as const;
  };
  element.addEventListener('pointerdown', (event) => {
    const [x, y] = at(event);
    held.set(event.pointerId, x);
    dragged = 0;
    // Dragging the axis, or with Shift, measures instead of panning.
    measuredFrom = held.size === 1 && (event.shiftKey || y < AXIS) ? x : null;
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener('pointermove', (event) => {
    const [x, y] = at(event);
    const before = held.get(event.pointerId);
    element.classList.toggle('measuring', event.shiftKey || y < AXIS);
    if (before === undefined) return gestures.hover(x, y);
    if (held.size === 1) {
      dragged += Math.abs(x - before);
      if (measuredFrom !== null) {
        if (dragged > 4) gestures.measure(measuredFrom, x);
      } else gestures.pan(before - x);
    } else {
      // Two fingers: the time under the other finger stays in place.
      const other = [...held].find(([id]) => id !== event.pointerId)?.[1] ?? before;
      gestures.zoom(Math.abs(before - other) / Math.max(8, Math.abs(x - other)), other);
      dragged = 100;
    }
    held.set(event.pointerId, x);
  });
  const release = (event: PointerEvent) => {
    const wasHeld = held.delete(event.pointerId);
    measuredFrom = null;
    if (wasHeld && dragged <= 4 && event.type === 'pointerup') gestures.click(...at(event));
  };
  element.addEventListener('pointerup', release);
  element.addEventListener('pointercancel', release);
  element.addEventListener('pointerleave', () => gestures.leave());
  element.addEventListener('dblclick', (event) => gestures.fill(at(event)[1]));
  listenToWheel(element, gestures);
}

function listenToWheel(element: HTMLCanvasElement, gestures: Gestures): void {
  element.addEventListener(
    'wheel',
    (event) => {
      const isPan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!isPan && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      if (isPan) gestures.pan(event.deltaX || event.deltaY);
      else gestures.zoom(1.0015 ** event.deltaY, event.clientX - element.getBoundingClientRect().left);
    },
    { passive: false },
  );
}
