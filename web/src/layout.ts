// Generated from crates/report/src/html/data/layout.rs: edit that, then
// BUSBOUND_WRITE_DOCS=1 cargo test -p busbound-report --lib

/** The version of the layout that this script reads. */
export const VERSION = 1;

/** One row of a lane: segments in order of time that never overlap. */
export interface PiecesColumns {
  readonly length: number;
  /** From the end of the previous segment, or the beginning of the picture, to its start. In ns. */
  readonly gap: Float64Array;
  /** From its start to its end. In ns. */
  readonly duration: Float64Array;
  /** Part of its duration in which none of its events ran. In ns. */
  readonly rest: Float64Array;
  /** Number of events it represents. */
  readonly count: Uint32Array;
  /** Its name, as an index into the header's names; for several events, that of the longest. */
  readonly name: Uint32Array;
  /** A note, as an index into the header's names. */
  readonly note: Uint32Array;
  /** Bytes it moved. In bytes. */
  readonly bytes: Float64Array;
  /** From the start of the call that launched it to its own start, if known. In ns. NaN for none. */
  readonly lead: Float64Array;
  /** What is special about it, as an index into the header's marks; for several events, about the longest. */
  readonly mark: Uint32Array;
}

/** Every step. */
export interface StepsColumns {
  readonly length: number;
  /** From the beginning of the picture. In ns. */
  readonly start: Float64Array;
  /** From its start to its end. In ns. */
  readonly duration: Float64Array;
  /** The number in its annotation, or its index. */
  readonly number: Float64Array;
  /** Whether it is part of the analyzed range. */
  readonly analyzed: Uint8Array;
  /** Whether it took clearly longer than the others. */
  readonly outlier: Uint8Array;
}

/** Time ranges of a finding. */
export interface SpansColumns {
  readonly length: number;
  /** From the beginning of the picture. In ns. */
  readonly start: Float64Array;
  /** From its start to its end. In ns. */
  readonly duration: Float64Array;
}

/** Every copy of the analyzed steps; if there are very many, similar copies are merged. */
export interface DotsColumns {
  readonly length: number;
  /** Its kind, as an index into the header's kinds. */
  readonly kind: Uint32Array;
  /** Bytes it moved. In bytes. */
  readonly bytes: Float64Array;
  /** Its duration. In ns. */
  readonly duration: Float64Array;
  /** From the beginning of the picture; for merged copies, that of the first. In ns. */
  readonly start: Float64Array;
  /** Number of copies it represents. */
  readonly count: Uint32Array;
  /** The timeline row of the copy, counted over all lanes, if it is drawn; for merged copies, that of the first. NaN for none. */
  readonly row: Float64Array;
  /** The copy's segment in that row. */
  readonly piece: Uint32Array;
}

/** The critical path of the first analyzed steps, in order of time. */
export interface PathColumns {
  readonly length: number;
  /** From the beginning of the picture. In ns. */
  readonly start: Float64Array;
  /** From its start to its end. In ns. */
  readonly duration: Float64Array;
  /** What happens in it, as an index into the header's classes. */
  readonly class: Uint32Array;
  /** The timeline row of its event, or of what it waits for, counted over all lanes. NaN for none. */
  readonly row: Float64Array;
}

/** Every table, by its name in the header. */
export interface Tables {
  readonly pieces: PiecesColumns;
  readonly steps: StepsColumns;
  readonly spans: SpansColumns;
  readonly dots: DotsColumns;
  readonly path: PathColumns;
}

/** The columns that this script reads. */
export const COLUMNS = {
  pieces: ['gap', 'duration', 'rest', 'count', 'name', 'note', 'bytes', 'lead', 'mark'],
  steps: ['start', 'duration', 'number', 'analyzed', 'outlier'],
  spans: ['start', 'duration'],
  dots: ['kind', 'bytes', 'duration', 'start', 'count', 'row', 'piece'],
  path: ['start', 'duration', 'class', 'row'],
} as const;

/** The header of the data, as JSON. */
export interface Head {
  /** The analyzed range, in nanoseconds from the beginning of the picture. */
  readonly analyzed: readonly [number, number];
  /** The blocks after the header: table name and number of rows of each. */
  readonly blocks: readonly (readonly [string, number])[];
  /** The classes of its segments. */
  readonly classes: readonly Class[];
  /** Rates that the link reaches. */
  readonly curves: readonly Curve[];
  /** The block of the dots. */
  readonly dots: number;
  /** In the order of the cards. */
  readonly findings: readonly Finding[];
  readonly groups: readonly Group[];
  /** The kinds of copies among the dots. */
  readonly kinds: readonly Kind[];
  /** The name of the run, if there are several. */
  readonly label: string;
  /** The link to the host. */
  readonly link: string;
  /** Every mark that a segment can have, by index. */
  readonly marks: readonly Mark[];
  /** Names and notes of segments, by index. */
  readonly names: readonly string[];
  /** The block of the critical path. */
  readonly path: number;
  /** Peak of the link in GB/s, per direction. */
  readonly peak: number;
  /** What the predicted lanes show. */
  readonly predicted: Predicted | null;
  /** Nanoseconds from the beginning of the picture to its end. */
  readonly span: number;
  /** The block of the steps. */
  readonly steps: number;
  /** The columns of each table in storage order: name, encoding, unit. */
  readonly tables: Readonly<Record<string, readonly (readonly [string, string, string])[]>>;
  /** The word for a step. */
  readonly unit: string;
  /** Where the recording of the devices ends, if the file is truncated. */
  readonly until: number | null;
  /** Version of the layout. */
  readonly version: number;
}

/** What happens in a segment of the critical path. */
export interface Class {
  /** Whether nothing runs in it. */
  readonly isWait: boolean;
  readonly label: string;
}

/** Rate by copy size. */
export interface Curve {
  readonly label: string;
  readonly pinned: boolean;
  /** Bytes and GB/s, in order of size. */
  readonly points: readonly (readonly [number, number])[];
  /** Where the rates come from. */
  readonly source: string;
  readonly toDevice: boolean;
}

export interface Finding {
  /** The block of its spans. */
  readonly spans: number;
  readonly title: string;
}

/** Lanes of one device or thread. */
export interface Group {
  readonly lanes: readonly Lane[];
  readonly of: Of;
  /** Peak of the device's link in GB/s, per direction. */
  readonly peak: number;
  readonly title: string;
}

/** Copies with the same direction and the same kinds of memory. */
export interface Kind {
  readonly label: string;
  /** The kind of host memory, if one end is the host. */
  readonly memory: MemoryKind | null;
  readonly to: To;
}

export interface Lane {
  /** The blocks of its rows. */
  readonly rows: readonly number[];
  readonly sort: Sort;
  readonly title: string;
}

/** What sets a segment apart from the others of its lane: pageable memory, or the cause of a gap. */
export type Mark = 'none' | 'pageable' | 'idle_copy' | 'idle_launch' | 'idle_sync' | 'idle_input' | 'idle_host' | 'idle_unknown';

/** The kind of memory at one end of a copy. */
export type MemoryKind = 'device' | 'managed' | 'pageable' | 'pinned' | 'unknown';

/** What a group shows. */
export type Of = 'device' | 'predicted' | 'thread';

/** The prediction in the predicted lanes. */
export interface Predicted {
  /** Nanoseconds per step with the changes. */
  readonly after: number;
  /** Nanoseconds per step without the changes, as recorded. */
  readonly before: number;
  /** The changes. */
  readonly change: string;
  /** Where its first step begins, in nanoseconds from the beginning of the picture. */
  readonly from: number;
}

/** What a lane shows. */
export type Sort = 'compute' | 'communication' | 'h2d' | 'd2h' | 'other' | 'idle' | 'host';

/** The destination of copies. */
export type To = 'device' | 'host' | 'other';
