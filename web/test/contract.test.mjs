// Does the script read what the program writes? crates/report/src/html/data/sample.rs encodes the sample and checks that it
// is up to date; here the page's own reader decodes it.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

import { build } from 'esbuild';

import { fixture, pageOf, root } from './browser.mjs';

const sample = JSON.parse(readFileSync(join(root, 'web', 'test', 'sample.json'), 'utf8'));
let folder;
let readPicture;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'busbound-contract-'));
  const outfile = join(folder, 'picture.mjs');
  await build({ entryPoints: [join(root, 'web', 'src', 'picture.ts')], outfile, bundle: true, format: 'esm', logLevel: 'error' });
  ({ readPicture } = await import(pathToFileURL(outfile).href));
});
after(() => rmSync(folder, { recursive: true, force: true }));

const numberOrNull = (value) => (Number.isNaN(value) ? null : value);

/** A picture in the format of the sample. */
function decoded(picture) {
  const piece = (row, i) => ({
    start: row.start[i],
    end: row.end[i],
    busy: row.busyBefore[i + 1] - row.busyBefore[i],
    count: row.count[i],
    name: row.name[i],
    note: row.note[i],
    bytes: row.bytes[i],
    launched: numberOrNull(row.launched[i]),
    mark: picture.marks[row.mark[i]],
  });
  const spans = ({ start, end }) => Array.from(start, (at, i) => [at, end[i]]);
  const { dots, steps } = picture;
  return {
    label: picture.label,
    unit: picture.unit,
    link: picture.link,
    peak: picture.peak,
    span: picture.span,
    analyzed: picture.analyzed,
    until: picture.until,
    names: picture.names,
    rows: picture.rows.map((row) => Array.from({ length: row.length }, (_, i) => piece(row, i))),
    steps: spans(steps).map((span, i) => [...span, steps.number[i], steps.analyzed[i], steps.outlier[i]]),
    findings: picture.findings.map(spans),
    dots: Array.from({ length: dots.length }, (_, i) => ({
      kind: dots.kind[i],
      bytes: dots.bytes[i],
      duration: dots.duration[i],
      start: dots.start[i],
      count: dots.count[i],
      row: numberOrNull(dots.row[i]),
      piece: dots.piece[i],
    })),
    path: spans(picture.path).map((span, i) => [...span, picture.classes[picture.path.class[i]].label, numberOrNull(picture.path.row[i])]),
    predicted: picture.predicted,
    curves: picture.curves.map(({ points }) => points),
  };
}

/** The sample with a changed header. */
function changed(change) {
  const bytes = inflateRawSync(Buffer.from(sample.data, 'base64'));
  const length = bytes.readUInt32LE(0);
  const head = JSON.parse(bytes.subarray(4, 4 + length));
  change(head);
  const text = Buffer.from(JSON.stringify(head));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(text.length);
  return deflateRawSync(Buffer.concat([size, text, bytes.subarray(4 + length)])).toString('base64');
}

test('every written value is read back', async () => {
  assert.deepEqual(decoded(await readPicture(sample.data)), sample.expected);
});

test('columns are found by name, in any order', async () => {
  // Swapping two names must swap their values.
  const data = changed((head) => {
    const { dots } = head.tables;
    const [name, duration] = [dots.findIndex(([name]) => name === 'bytes'), dots.findIndex(([name]) => name === 'duration')];
    [dots[name][0], dots[duration][0]] = ['duration', 'bytes'];
  });
  const { dots } = decoded(await readPicture(data));
  assert.deepEqual(
    dots.map(({ bytes, duration }) => [bytes, duration]),
    sample.expected.dots.map(({ bytes, duration }) => [duration, bytes]),
  );
});

test('an unknown version, an unknown encoding or a missing column is an error with a clear message', async () => {
  const refused = async (change, sentence) => assert.rejects(readPicture(changed(change)), sentence);
  await refused((head) => (head.version = 99), /version 99, but its script reads version \d+: write the page again/);
  await refused((head) => (head.tables.dots[1][0] = 'octets'), /has no column bytes in table dots/);
  await refused((head) => (head.tables.pieces[0][1] = 'zigzag'), /unknown encoding zigzag/);
  await refused((head) => head.blocks.pop(), /truncated or damaged/);
  await refused((head) => (head.dots = 0), /no dots in block 0/);
});

test('the dot of a copy refers to the segment of that copy', async () => {
  for (const name of ['off_block_pageable_c4.json.gz', 'swap_duplex.json.gz', 'train_pageable.json.gz']) {
    const page = readFileSync(pageOf(`contract_${name}`, 'diagnose', fixture(name)), 'utf8');
    const [, data] = page.match(/class="data">([^<]*)</);
    const picture = await readPicture(data);
    const { dots, rows } = picture;
    assert.ok(dots.length > 0, name);
    for (let i = 0; i < dots.length; i++) {
      const [row, at] = [rows[dots.row[i]], dots.piece[i]];
      const piece = { start: row.start[at], duration: row.end[at] - row.start[at], bytes: row.bytes[at] };
      assert.deepEqual(piece, { start: dots.start[i], duration: dots.duration[i], bytes: dots.bytes[i] }, `${name}, dot ${i}`);
    }
  }
});
