// The chart data of one run, read from the data block in the page. layout.ts describes its contents.

import { Blocks, UnreadableData } from './columns';
import { type Class, type Curve, type DotsColumns, type Head, type Kind, type Of, type PiecesColumns, type Predicted, type Sort, VERSION } from './layout';

/** Segments in order of time that never overlap; times in nanoseconds from the beginning of the picture. */
export interface Row {
  readonly length: number;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly count: Uint32Array;
  readonly name: Uint32Array;
  readonly note: Uint32Array;
  readonly bytes: Float64Array;
  readonly mark: Uint32Array;
  /** When the call that launched it began; NaN if unknown. */
  readonly launched: Float64Array;
  /** Busy time and bytes of all segments before this index. */
  readonly busyBefore: Float64Array;
  readonly bytesBefore: Float64Array;
}

export interface Lane {
  readonly sort: Sort;
  readonly title: string;
  readonly rows: readonly Row[];
}

export interface Group {
  readonly title: string;
  readonly of: Of;
  readonly peak: number;
  readonly lanes: readonly Lane[];
}

export interface Spans {
  readonly start: Float64Array;
  readonly end: Float64Array;
}

export interface Finding extends Spans {
  readonly title: string;
}

export interface Steps extends Spans {
  /** As annotated, or counted from 0. */
  readonly number: Float64Array;
  readonly analyzed: readonly boolean[];
  readonly outlier: readonly boolean[];
}

/** The critical path of the first analyzed steps. */
export interface Path extends Spans {
  readonly class: Uint32Array;
  /** Index into the picture's rows; NaN for none. */
  readonly row: Float64Array;
}

type InBlocks = 'version' | 'tables' | 'blocks' | 'groups' | 'findings' | 'steps' | 'dots' | 'path';

export interface Picture extends Omit<Head, InBlocks> {
  readonly groups: readonly Group[];
  /** All rows of all lanes in order; dots refer to them by index. */
  readonly rows: readonly Row[];
  readonly findings: readonly Finding[];
  readonly steps: Steps;
  readonly dots: DotsColumns;
  readonly path: Path;
}

export type { Class, Curve, Kind, Predicted, Sort };

export async function readPicture(base64: string): Promise<Picture> {
  const bytes = await inflated(fromBase64(base64.trim()));
  const headLength = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headLength))) as Head;
  if (head.version !== VERSION) {
    throw new UnreadableData(
      `The data of this page has version ${head.version}, but its script reads version ${VERSION}: write the page again with a single version of busbound.`,
    );
  }
  const blocks = new Blocks(head.tables, head.blocks, bytes, 4 + headLength);
  const groups = head.groups.map((group) => ({
    ...group,
    lanes: group.lanes.map((lane) => ({ ...lane, rows: lane.rows.map((block) => row(blocks.get('pieces', block))) })),
  }));
  const steps = blocks.get('steps', head.steps);
  const path = blocks.get('path', head.path);
  return {
    ...head,
    groups,
    rows: groups.flatMap((group) => group.lanes).flatMap((lane) => lane.rows),
    steps: { ...spans(steps), number: steps.number, analyzed: Array.from(steps.analyzed, Boolean), outlier: Array.from(steps.outlier, Boolean) },
    findings: head.findings.map((finding) => ({ title: finding.title, ...spans(blocks.get('spans', finding.spans)) })),
    dots: blocks.get('dots', head.dots),
    path: { ...spans(path), class: path.class, row: path.row },
  };
}

/** Converts gaps and durations to times, in place because there may be a million of them. */
function row(pieces: PiecesColumns): Row {
  const { length, gap: start, duration: end, rest, count, name, note, bytes, mark, lead: launched } = pieces;
  const busyBefore = new Float64Array(length + 1);
  const bytesBefore = new Float64Array(length + 1);
  let before = 0;
  for (let i = 0; i < length; i++) {
    start[i] += before;
    const taken = end[i];
    end[i] = before = start[i] + taken;
    launched[i] = start[i] - launched[i];
    busyBefore[i + 1] = busyBefore[i] + taken - rest[i];
    bytesBefore[i + 1] = bytesBefore[i] + bytes[i];
  }
  return { length, start, end, count, name, note, bytes, mark, launched, busyBefore, bytesBefore };
}

function spans({ start, duration }: { readonly start: Float64Array; readonly duration: Float64Array }): Spans {
  return { start, end: start.map((at, i) => at + duration[i]) };
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
