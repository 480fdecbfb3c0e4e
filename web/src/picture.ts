// What is drawn of one run: read from the block of data in the page, as crates/report/src/html/encode.rs writes it.

export type LaneSort = 'compute' | 'communication' | 'h2d' | 'd2h' | 'other' | 'idle' | 'host';
export type GroupOf = 'device' | 'predicted' | 'thread';

/** Pieces in order of time that never overlap; times in nanoseconds from the picture's beginning. */
export interface Row {
  readonly length: number;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly count: Uint32Array;
  readonly name: Uint32Array;
  readonly note: Uint32Array;
  readonly bytes: Float64Array;
  /** When the call behind it began; NaN where that is not known. */
  readonly launched: Float64Array;
  /** Time at work, and bytes, in all pieces before the one of this number. */
  readonly busyBefore: Float64Array;
  readonly bytesBefore: Float64Array;
}

export interface Lane {
  readonly sort: LaneSort;
  readonly title: string;
  readonly rows: readonly Row[];
}

export interface Group {
  readonly title: string;
  readonly of: GroupOf;
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
  readonly judged: readonly boolean[];
  readonly outlier: readonly boolean[];
}

export interface DotKind {
  readonly label: string;
  readonly to: 'device' | 'host' | 'other';
  readonly memory: string | null;
}

export interface Dots {
  readonly length: number;
  readonly kind: Uint32Array;
  readonly bytes: Float64Array;
  readonly ns: Float64Array;
  readonly start: Float64Array;
  readonly count: Uint32Array;
}

export interface Curve {
  readonly label: string;
  readonly toDevice: boolean;
  readonly pinned: boolean;
  readonly points: readonly (readonly [number, number])[];
}

export interface Picture {
  readonly label: string;
  readonly unit: string;
  readonly span: number;
  readonly judged: readonly [number, number];
  /** Where the record of the devices ends, if the file was cut off. */
  readonly until: number | null;
  readonly link: string;
  readonly peak: number;
  readonly names: readonly string[];
  readonly groups: readonly Group[];
  readonly findings: readonly Finding[];
  readonly steps: Steps;
  readonly kinds: readonly DotKind[];
  readonly dots: Dots;
  readonly curves: readonly Curve[];
}

interface Head extends Omit<Picture, 'groups' | 'findings' | 'steps' | 'dots'> {
  readonly groups: readonly (Omit<Group, 'lanes'> & {
    readonly lanes: readonly { readonly sort: LaneSort; readonly title: string; readonly rows: readonly number[] }[];
  })[];
  readonly findings: readonly { readonly title: string; readonly spans: number }[];
  readonly steps: number;
  readonly dots: number;
}

export async function readPicture(base64: string): Promise<Picture> {
  const bytes = await inflated(fromBase64(base64.trim()));
  const headLength = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headLength))) as Head;
  const columns = new Columns(bytes, 4 + headLength);
  const groups = head.groups.map((group) => ({
    ...group,
    lanes: group.lanes.map((lane) => ({ ...lane, rows: lane.rows.map((length) => readRow(columns, length)) })),
  }));
  const stepSpans = readSpans(columns, head.steps);
  const flags = columns.floats(head.steps);
  const steps = {
    ...stepSpans,
    judged: Array.from(flags, (flag) => flag % 2 === 1),
    outlier: Array.from(flags, (flag) => flag >= 2),
  };
  const findings = head.findings.map(({ title, spans }) => ({ title, ...readSpans(columns, spans) }));
  const dots = {
    length: head.dots,
    kind: columns.integers(head.dots),
    bytes: columns.floats(head.dots),
    ns: columns.floats(head.dots),
    start: columns.floats(head.dots),
    count: columns.integers(head.dots),
  };
  return { ...head, groups, steps, findings, dots };
}

function readRow(columns: Columns, length: number): Row {
  const start = columns.floats(length);
  const end = columns.floats(length);
  const resting = columns.floats(length);
  const count = columns.integers(length);
  const name = columns.integers(length);
  const note = columns.integers(length);
  const bytes = columns.floats(length);
  const launched = columns.floats(length);
  const busyBefore = new Float64Array(length + 1);
  const bytesBefore = new Float64Array(length + 1);
  let before = 0;
  for (let i = 0; i < length; i++) {
    // Written as the gap before it and its length.
    start[i] += before;
    const taken = end[i];
    end[i] = before = start[i] + taken;
    count[i] += 1;
    launched[i] = launched[i] === 0 ? NaN : start[i] - (launched[i] - 1);
    busyBefore[i + 1] = busyBefore[i] + taken - resting[i];
    bytesBefore[i + 1] = bytesBefore[i] + bytes[i];
  }
  return { length, start, end, count, name, note, bytes, launched, busyBefore, bytesBefore };
}

function readSpans(columns: Columns, length: number): Spans {
  const start = columns.floats(length);
  const end = columns.floats(length);
  for (let i = 0; i < length; i++) end[i] += start[i];
  return { start, end };
}

/** LEB128 numbers, one after another. */
class Columns {
  constructor(
    private readonly bytes: Uint8Array,
    private at: number,
  ) {}

  floats(length: number): Float64Array {
    return this.fill(new Float64Array(length));
  }

  integers(length: number): Uint32Array {
    return this.fill(new Uint32Array(length));
  }

  private fill<T extends Float64Array | Uint32Array>(into: T): T {
    const { bytes } = this;
    let { at } = this;
    for (let i = 0; i < into.length; i++) {
      let value = 0;
      let scale = 1;
      let byte: number;
      do {
        byte = bytes[at++];
        value += (byte & 0x7f) * scale;
        scale *= 128;
      } while (byte >= 0x80);
      into[i] = value;
    }
    this.at = at;
    return into;
  }
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
