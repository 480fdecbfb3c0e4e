// Where lanes lie from top to bottom.

import type { Group, Lane, Picture, Row } from '../picture';

/** One run in the timeline; several are laid on one scale, each from its own beginning. */
export interface Run {
  readonly picture: Picture;
  /** Where its time begins on the common scale. */
  readonly offset: number;
}

export interface TitleLine {
  readonly kind: 'title';
  readonly y: number;
  readonly height: number;
  readonly text: string;
  readonly key: string;
  readonly folded: boolean;
}

export interface RowLine {
  readonly kind: 'row';
  readonly y: number;
  readonly height: number;
  readonly run: Run;
  readonly group: Group;
  readonly lane: Lane;
  readonly row: Row;
  /** The lane's title stands at its first row. */
  readonly title: string;
}

export type Line = TitleLine | RowLine;

export interface Layout {
  readonly lines: readonly Line[];
  readonly rows: readonly RowLine[];
  readonly height: number;
}

export const AXIS = 34;
const TITLE = 24;
const LANE_GAP = 3;

function rowHeight(lane: Lane): number {
  if (lane.sort === 'host') return 15;
  return lane.sort === 'idle' ? 14 : 20;
}

export function keyOf(run: number, group: number): string {
  return `${run}/${group}`;
}

/** Threads of the host but the first begin folded, for there may be many; beside another run all do, and what is predicted. */
export function foldedAtFirst(runs: readonly Run[]): Set<string> {
  const folded = new Set<string>();
  runs.forEach(({ picture }, r) => {
    let threads = 0;
    picture.groups.forEach((group, g) => {
      const isBeside = runs.length > 1 && group.of !== 'device';
      if (isBeside || (group.of === 'thread' && threads++ > 0)) folded.add(keyOf(r, g));
    });
  });
  return folded;
}

export function layOut(runs: readonly Run[], folded: ReadonlySet<string>): Layout {
  const lines: Line[] = [];
  const rows: RowLine[] = [];
  let y = AXIS;
  runs.forEach((run, r) => {
    run.picture.groups.forEach((group, g) => {
      const key = keyOf(r, g);
      const isFolded = folded.has(key);
      const text = runs.length > 1 ? `${run.picture.label}: ${group.title}` : group.title;
      lines.push({ kind: 'title', y, height: TITLE, text, key, folded: isFolded });
      y += TITLE;
      if (isFolded) return;
      for (const lane of group.lanes) {
        lane.rows.forEach((row, i) => {
          const height = rowHeight(lane);
          const line: RowLine = { kind: 'row', y, height, run, group, lane, row, title: i === 0 ? lane.title : '' };
          lines.push(line);
          rows.push(line);
          y += height + 1;
        });
        y += LANE_GAP;
      }
    });
  });
  return { lines, rows, height: y + 6 };
}
