// The keys of the timeline, as in Perfetto: active while it has the focus or the pointer is over it.

import type { Timeline } from './timeline';

/** Keys that scroll the page unless the timeline has the focus. */
const SCROLLING = new Set(['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Enter']);

const KEYS: Readonly<Record<string, (timeline: Timeline) => void>> = {
  w: (timeline) => timeline.zoom(0.6),
  s: (timeline) => timeline.zoom(1 / 0.6),
  a: (timeline) => timeline.pan(-0.15),
  d: (timeline) => timeline.pan(0.15),
  '+': (timeline) => timeline.zoom(0.6),
  '=': (timeline) => timeline.zoom(0.6),
  '-': (timeline) => timeline.zoom(1 / 0.6),
  ArrowLeft: (timeline) => timeline.pan(-0.15),
  ArrowRight: (timeline) => timeline.pan(0.15),
  ArrowUp: (timeline) => timeline.selectLane(-1),
  ArrowDown: (timeline) => timeline.selectLane(1),
  '0': (timeline) => timeline.showAll(),
  '1': (timeline) => timeline.showAnalyzed(),
  n: (timeline) => timeline.selectNeighbor(1),
  p: (timeline) => timeline.selectNeighbor(-1),
  f: (timeline) => timeline.fill(),
  Enter: (timeline) => timeline.fill(),
  m: (timeline) => timeline.measure(),
  g: (timeline) => timeline.goToLaunch(),
  c: (timeline) => timeline.togglePath(),
  o: (timeline) => timeline.foldAll(),
  '/': (timeline) => timeline.search(),
  Escape: (timeline) => timeline.clear(),
};

export function listenToKeys(element: HTMLCanvasElement, timeline: Timeline): void {
  let isOver = false;
  element.addEventListener('pointerenter', () => (isOver = true));
  element.addEventListener('pointerleave', () => (isOver = false));
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = KEYS[key];
    const hasFocus = document.activeElement === element;
    // Text fields and buttons keep their keys.
    const isFree = isOver && document.activeElement === document.body && !SCROLLING.has(key);
    if (!act || !(hasFocus || isFree)) return;
    act(timeline);
    event.preventDefault();
  });
}
