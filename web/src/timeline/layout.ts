// The vertical positions of lanes.

import type { Group, Lane, Picture, Row } from '../picture';

/** One run in the timeline; several share one scale, aligned at their starts. */
export interface Run {
  readonly picture: Picture;
  /** Where its time begins on the shared scale. */
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
  /** The lane's title, on its first row only. */
  readonly title: string;
}

export type Line = TitleLine | RowLine;

export interface Layout {
  readonly lines: readonly Line[];
  readonly rows: readonly RowLine[];
  /** The unfolded rows. */
  readonly byRow: ReadonlyMap<Row, RowLine>;
  readonly height: number;
}

export const AXIS = 40;
const TITLE = 24;
const LANE_GAP = 3;

function rowHeight(lane: Lane): number {
  if (lane.sort === 'host') return 15;
  return lane.sort === 'idle' ? 14 : 20;
}

export function keyOf(run: number, group: number): string {
  return `${run}/${group}`;
}

/** All host threads except the first start folded, because there may be many. In a comparison, everything except devices does. */
export function initiallyFolded(runs: readonly Run[]): Set<string> {
  const folded = new Set<string>();
  runs.forEach(({ picture }, r) => {
    let threads = 0;
    picture.groups.forEach((group, g) => {
      const isMinor = runs.length > 1 && group.of !== 'device';
      if (isMinor || (group.of === 'thread' && threads++ > 0)) folded.add(keyOf(r, g));
    });
  });
  return folded;
}

export function computeLayout(runs: readonly Run[], folded: ReadonlySet<string>): Layout {
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
  return { lines, rows, byRow: new Map(rows.map((line) => [line.row, line])), height: y + 6 };
}
