// Reads the tables of a page's data: LEB128 numbers, column by column, as the header describes them.

import { COLUMNS, type Tables } from './layout';

/** The columns of each table in order: name, encoding, unit. */
export type Described = Readonly<Record<string, readonly (readonly [string, string, string])[]>>;

type Values = Float64Array | Uint32Array | Uint8Array;
type Block = { readonly table: string; readonly columns: Readonly<Record<string, Values | number>> };

/** Data that this script cannot read; the message is shown on the page. */
export class UnreadableData extends Error {}

/** All blocks of rows, which the header refers to by number. */
export class Blocks {
  private readonly blocks: readonly Block[];

  constructor(described: Described, sizes: readonly (readonly [string, number])[], bytes: Uint8Array, at: number) {
    for (const [table, wanted] of Object.entries(COLUMNS)) {
      const names = (described[table] ?? []).map(([name]) => name);
      const missing = wanted.find((name) => !names.includes(name));
      if (missing !== undefined) throw new UnreadableData(`The data of this page has no column ${missing} in table ${table}.`);
    }
    const reader = new Reader(bytes, at);
    this.blocks = sizes.map(([table, length]) => {
      const columns: Record<string, Values | number> = { length };
      for (const [name, encoding] of described[table] ?? []) columns[name] = reader.column(encoding, length);
      return { table, columns };
    });
    if (reader.at !== bytes.length) throw new UnreadableData('The data of this page is truncated or damaged.');
  }

  get<T extends keyof Tables>(table: T, number: number): Tables[T] {
    const block = this.blocks[number];
    if (block?.table !== table) throw new UnreadableData(`The data of this page has no ${table} in block ${number}.`);
    return block.columns as unknown as Tables[T];
  }
}

class Reader {
  constructor(
    private readonly bytes: Uint8Array,
    public at: number,
  ) {}

  column(encoding: string, length: number): Values {
    switch (encoding) {
      case 'number':
        return this.fill(new Float64Array(length), 0);
      case 'optional': {
        const values = this.fill(new Float64Array(length), -1);
        for (let i = 0; i < length; i++) if (values[i] < 0) values[i] = NaN;
        return values;
      }
      case 'index':
        return this.fill(new Uint32Array(length), 0);
      case 'count':
        return this.fill(new Uint32Array(length), 1);
      case 'flag':
        return this.fill(new Uint8Array(length), 0);
      default:
        throw new UnreadableData(`The data of this page has a column with the unknown encoding ${encoding}.`);
    }
  }

  /** The next numbers, each with `plus` added. */
  private fill<T extends Values>(into: T, plus: number): T {
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
      into[i] = value + plus;
    }
    this.at = at;
    return into;
  }
}
