// The pages of comparisons, several runs, ranks, benchmarks and machines in a real browser.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { busbound, fixture, launch, open, pageOf, root, screenshot } from './browser.mjs';
import { lateRank } from './ranks.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const few = ['off_block_pageable_c4.json.gz', 'launch_bound.json.gz', 'train_pageable.json.gz'].map(fixture);
const pages = {
  compare_wide: ['compare', fixture('off_block_pageable_c4.json.gz'), fixture('off_layerwise_d2_c4.json.gz')],
  many: ['diagnose', ...few],
  fleet: ['diagnose', ...readdirSync(fixture('ranks')).map((name) => fixture(`ranks/${name}`))],
  arrivals: ['diagnose', ...lateRank(join(root, 'target', 'pages', 'late'))],
  bench: ['bench', '--from', fixture('machines/raw/h200-full-1.json')],
  topology: ['topo', '--from-nccl', fixture('topology/nccl-eight-gpus.xml')],
};

for (const [name, args] of Object.entries(pages)) {
  test(`${name}: no errors and no requests, and it fits a phone`, async () => {
    const path = pageOf(name, ...args);
    for (const [options, shot] of [[{}, name], [PHONE, `${name}_phone`]]) {
      const { page, seen, url } = await open(browser, path, { wait: false, ...options });
      await page.waitForTimeout(300);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= (options.viewport?.width ?? 1280), `${width} px`);
      await screenshot(page, shot);
      assert.deepEqual(seen, { errors: [], requests: [url] });
      await page.close();
    }
  });
}

test('compared runs share one scale, and the largest change comes first', async () => {
  const comparison = JSON.parse(busbound(...pages.compare_wide, '--json'));
  const { page } = await open(browser, pageOf('scale', ...pages.compare_wide));
  const widths = await page.locator('.on-scale .share-bar').evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  const span = comparison.figures.filter((figure) => figure.group === 'part');
  const sums = [0, 1].map((run) => span.filter((figure) => figure.name !== 'not explained by the parts').reduce((sum, figure) => sum + figure.values[run], 0));
  assert.ok(Math.abs(widths[1] / widths[0] - sums[1] / sums[0]) < 0.01, `${widths} for ${sums}`);
  const changes = await page.locator('.changes .change').allTextContents();
  const largest = [...span].sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
  assert.deepEqual(changes, largest.slice(0, changes.length).map((figure) => figure.name));
  assert.equal(changes[0], 'copying only');
  await page.close();
});

test('several runs are a table with short names to sort and to open', async () => {
  const { page } = await open(browser, pageOf('sorted', ...pages.many), { wait: false });
  const names = () => page.locator('#summary tbody td:first-child').allTextContents();
  assert.deepEqual(await names(), ['off_block_pageable_c4.json.gz', 'launch_bound.json.gz', 'train_pageable.json.gz']);
  const step = page.getByRole('button', { name: 'step', exact: true });
  await step.click();
  const values = () => page.locator('#summary tbody td:nth-child(3)').evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  const down = await values();
  assert.deepEqual(down, [...down].sort((a, b) => b - a));
  assert.equal(await page.locator('#summary th[aria-sort="descending"]').textContent(), 'step');
  await step.click();
  assert.deepEqual(await values(), [...down].reverse());
  // A line of one step says nothing.
  assert.equal(await page.locator('#summary svg.spark').count(), 2);
  await page.getByRole('cell', { name: 'launch_bound.json.gz' }).getByRole('link').click();
  await page.waitForSelector('#run-1[data-drawn="done"]');
  assert.match(await page.locator('h1:visible').textContent(), /^Launch-bound/);
  await page.close();
});

test('the straggler is marked in the heat map, and its longest part is bold', async () => {
  const { page } = await open(browser, pageOf('heat', ...pages.fleet), { wait: false });
  const row = page.locator('.heat-map tr.straggler');
  assert.equal(await row.count(), 1);
  assert.match(await row.locator('th').textContent(), /^4 straggler$/);
  assert.deepEqual(await row.locator('b').allTextContents(), ['50.0 ms']);
  await page.close();
});

test('the arrival order at collectives marks the last rank, and says when each rank arrives', async () => {
  const { page } = await open(browser, pageOf('order', ...pages.arrivals), { wait: false });
  const rows = page.locator('.arrival-order tbody tr');
  assert.equal(await rows.count(), 6);
  const dots = rows.first().locator('.track i');
  const titles = await dots.evaluateAll((all) => all.map((dot) => dot.title));
  assert.deepEqual(titles.map((title) => title.split(':')[0]), ['rank 0', 'rank 1', 'rank 3', 'rank 2']);
  assert.match(titles[3], /^rank 2: (3\.99|4\.0\d) ms after the first$/);
  assert.equal(await rows.first().locator('.track i.last').evaluate((dot) => dot.title), titles[3]);
  assert.equal(await rows.first().locator('.track').getAttribute('aria-label'), titles.join(', '));
  await page.close();
});

test('ranks on one clock: the late one is marked, ranks are chosen, and all lanes show the same time', async () => {
  const { page, seen } = await open(browser, pageOf('aligned', ...pages.arrivals), { wait: false });
  const section = page.locator('.aligned-lanes');
  assert.match(await section.locator('p').first().textContent(), /to within (0\.0\d+ ms|\d+(\.\d+)? µs|0 ms)/);
  const shown = () => section.locator('.rank-lanes:visible').evaluateAll((rows) => rows.map((row) => row.dataset.rank));
  assert.deepEqual(await shown(), ['rank 0', 'rank 1', 'rank 2', 'rank 3']);
  assert.match(await section.locator('.choose-ranks label', { hasText: 'late' }).textContent(), /rank 2/);
  await section.getByRole('checkbox', { name: 'rank 1' }).uncheck();
  assert.deepEqual(await shown(), ['rank 0', 'rank 2', 'rank 3']);
  // Rank 2 computes for 7 ms of each 10, the others for 3 and 3.4; all leave the collective together.
  const ends = (rank, lane) => section.locator(`.rank-lanes[data-rank="${rank}"] svg[aria-label^="${lane}"] path`).evaluate((path) => [...path.getAttribute('d').matchAll(/M(\d+) 0H(\d+)/g)].map((found) => [Number(found[1]), Number(found[2])]));
  const compute = await ends('rank 2', 'compute');
  assert.equal(compute.length, 6);
  for (const [from, until] of compute) assert.ok(Math.abs(until - from - 7000) <= 2, `${from} ${until}`);
  const [one, other] = [await ends('rank 0', 'collectives'), await ends('rank 2', 'collectives')];
  for (const [step, [, until]] of one.entries()) assert.ok(Math.abs(until - other[step][1]) < 60, `${until} ${other[step][1]}`);
  const boxes = () => section.locator('svg.lane').evaluateAll((lanes) => [...new Set(lanes.map((lane) => lane.getAttribute('viewBox')))]);
  const all = await boxes();
  assert.equal(all.length, 1);
  await section.getByRole('button', { name: 'zoom in' }).click();
  const half = await boxes();
  assert.equal(half.length, 1);
  assert.ok(Math.abs(Number(half[0].split(' ')[2]) * 2 - Number(all[0].split(' ')[2])) <= 1, `${half} ${all}`);
  await section.getByRole('button', { name: 'all', exact: true }).click();
  assert.deepEqual(await boxes(), all);
  assert.deepEqual(seen.errors, []);
  await page.close();
});

test('a benchmark has a verdict per figure and at most four labeled curves per chart', async () => {
  const bench = JSON.parse(busbound(...pages.bench, '--json'));
  const { page } = await open(browser, pageOf('verdicts', ...pages.bench), { wait: false });
  assert.equal(await page.locator('.verdicts tbody tr').count(), bench.figures.length);
  for (const chart of await page.locator('svg.curves').all()) {
    const [curves, texts] = [await chart.locator('.curve title').allTextContents(), await chart.locator('text').allTextContents()];
    assert.ok(curves.length >= 1 && curves.length <= 4);
    for (const curve of curves) assert.ok(texts.includes(curve), curve);
  }
  await page.close();
});

test('the picture of a machine has every GPU, and marks a link with fewer lanes', async () => {
  const { page } = await open(browser, pageOf('machine', ...pages.topology), { wait: false });
  assert.equal(await page.locator('svg.machine rect.gpu').count(), 8);
  assert.equal(await page.locator('svg.machine rect.numa').count(), 2);
  assert.equal(await page.locator('svg.machine .trouble').count(), 0);
  assert.deepEqual([...new Set(await page.locator('svg.machine .nvlink').allTextContents())], ['NV18 to all GPUs']);
  await page.close();
});
