// Generated from crates/report/src/html/data/layout.rs: edit that, then
// BUSBOUND_WRITE_DOCS=1 cargo test -p busbound-report --lib

/** The version of the layout that this script reads. */
export const VERSION = 1;

/** One row of a lane: pieces in order of time that never overlap. */
export interface PiecesColumns {
  readonly length: number;
  /** From the end of the piece before, or the beginning of the picture, to its start. In ns. */
  readonly gap: Float64Array;
  /** From its start to its end. In ns. */
  readonly duration: Float64Array;
  /** Time of its duration in which none of its events ran. In ns. */
  readonly rest: Float64Array;
  /** Events it stands for. */
  readonly count: Uint32Array;
  /** What it is called, in the head's names; of several events the longest. */
  readonly name: Uint32Array;
  /** What else there is to say, in the head's names. */
  readonly note: Uint32Array;
  /** What it moved. In bytes. */
  readonly bytes: Float64Array;
  /** From the start of the call behind it to its own start, where that is known. In ns. NaN for none. */
  readonly lead: Float64Array;
}

/** Every step. */
export interface StepsColumns {
  readonly length: number;
  /** From the beginning of the picture. In ns. */
  readonly start: Float64Array;
  /** From its start to its end. In ns. */
  readonly duration: Float64Array;
  /** Whether the figures are for it. */
  readonly judged: Uint8Array;
  /** Whether it took clearly longer than the others. */
  readonly outlier: Uint8Array;
}

/** Where a finding is. */
export interface SpansColumns {
  readonly length: number;
  /** From the beginning of the picture. In ns. */
  readonly start: Float64Array;
  /** From its start to its end. In ns. */
  readonly duration: Float64Array;
}

/** Every copy of the judged steps; of very many, those alike as one. */
export interface DotsColumns {
  readonly length: number;
  /** Its kind, in the head's kinds. */
  readonly kind: Uint32Array;
  /** What it moved. In bytes. */
  readonly bytes: Float64Array;
  /** How long it took. In ns. */
  readonly duration: Float64Array;
  /** From the beginning of the picture; of several the first. In ns. */
  readonly start: Float64Array;
  /** Copies it stands for. */
  readonly count: Uint32Array;
  /** The row of the timeline that the copy is in, counted over all lanes, if it is drawn; of several the first's. NaN for none. */
  readonly row: Float64Array;
  /** The copy's piece in that row. */
  readonly piece: Uint32Array;
}

/** Every table, by the name that the head gives it. */
export interface Tables {
  readonly pieces: PiecesColumns;
  readonly steps: StepsColumns;
  readonly spans: SpansColumns;
  readonly dots: DotsColumns;
}

/** The columns that this script reads. */
export const COLUMNS = {
  pieces: ['gap', 'duration', 'rest', 'count', 'name', 'note', 'bytes', 'lead'],
  steps: ['start', 'duration', 'judged', 'outlier'],
  spans: ['start', 'duration'],
  dots: ['kind', 'bytes', 'duration', 'start', 'count', 'row', 'piece'],
} as const;

/** What the data begins with, as JSON. */
export interface Head {
  /** What follows the head: each block's table and number of rows. */
  readonly blocks: readonly (readonly [string, number])[];
  /** What the link reaches. */
  readonly curves: readonly Curve[];
  /** The block of the dots. */
  readonly dots: number;
  /** In the order of the cards. */
  readonly findings: readonly Finding[];
  readonly groups: readonly Group[];
  /** The stretch that figures are for, in nanoseconds from the beginning of the picture. */
  readonly judged: readonly [number, number];
  /** The kinds of copies that dots are of. */
  readonly kinds: readonly Kind[];
  /** What the run is called where there are several. */
  readonly label: string;
  /** The link to the host. */
  readonly link: string;
  /** What pieces are called and what their notes say, by number. */
  readonly names: readonly string[];
  /** GB/s of the link, each way. */
  readonly peak: number;
  /** Nanoseconds from the beginning of the picture to its end. */
  readonly span: number;
  /** The block of the steps. */
  readonly steps: number;
  /** The columns of each table in the order in which they are stored: name, encoding, unit. */
  readonly tables: Readonly<Record<string, readonly (readonly [string, string, string])[]>>;
  /** What a step is called. */
  readonly unit: string;
  /** Where the record of the devices ends, if the file was cut off. */
  readonly until: number | null;
  /** Of the layout. */
  readonly version: number;
}

/** Rates over sizes. */
export interface Curve {
  readonly label: string;
  readonly pinned: boolean;
  /** Bytes and GB/s, in order of size. */
  readonly points: readonly (readonly [number, number])[];
  readonly toDevice: boolean;
}

export interface Finding {
  /** The block of its spans. */
  readonly spans: number;
  readonly title: string;
}

/** Lanes that belong together. */
export interface Group {
  readonly lanes: readonly Lane[];
  readonly of: Of;
  /** GB/s of a device's link, each way. */
  readonly peak: number;
  readonly title: string;
}

/** Copies that go the same way between the same kinds of memory. */
export interface Kind {
  readonly label: string;
  /** The host's memory, where one end is the host's. */
  readonly memory: MemoryKind | null;
  readonly to: To;
}

export interface Lane {
  /** The blocks of its rows. */
  readonly rows: readonly number[];
  readonly sort: Sort;
  readonly title: string;
}

/** What sort of memory one end of a copy was in. */
export type MemoryKind = 'device' | 'managed' | 'pageable' | 'pinned' | 'unknown';

/** What a group shows. */
export type Of = 'device' | 'predicted' | 'thread';

/** What a lane shows. */
export type Sort = 'compute' | 'communication' | 'h2d' | 'd2h' | 'other' | 'idle' | 'host';

/** Where copies go to. */
export type To = 'device' | 'host' | 'other';
