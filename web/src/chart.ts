// What every chart beside the timeline is: it gets a place to draw in, and can be drawn for paper.

import type { Picture } from './picture';
import type { Timeline } from './timeline/timeline';

export interface Place {
  readonly mount: HTMLElement;
  /** The run that the page is about; of a comparison the first. */
  readonly picture: Picture;
  readonly timeline: Timeline;
  /** Brings the timeline into view. */
  readonly toTimeline: () => void;
}

export interface Still {
  still(width: number): SVGSVGElement;
}

/** Draws into its place; gives what it has drawn, nothing where there is nothing to draw. */
export type Chart = (place: Place) => readonly Still[];
