// The interface of every chart except the timeline: it draws into a container and can be drawn for print.

import type { Picture } from './picture';
import type { Timeline } from './timeline/timeline';

export interface Place {
  readonly mount: HTMLElement;
  /** The run on the page; in a comparison, the first. */
  readonly picture: Picture;
  readonly timeline: Timeline;
  /** Brings the timeline into view. */
  readonly toTimeline: () => void;
}

export interface Still {
  still(width: number): SVGSVGElement;
}

/** Draws into its container; returns the drawn charts, empty if there is nothing to draw. */
export type Chart = (place: Place) => readonly Still[];
