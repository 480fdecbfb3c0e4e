// The timeline in a real browser: keys, wheel, search, ranges, arrows, the critical path and what charts share.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { fixture, launch, open, pageOf, root, screenshot } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const canvasOf = (page) => page.locator('.timeline canvas');
const data = (page) => canvasOf(page).evaluate((canvas) => ({ ...canvas.dataset }));

/** The visible time range, in nanoseconds. */
async function view(page) {
  await page.waitForTimeout(80);
  const { from, to } = await data(page);
  return { from: Number(from), to: Number(to), length: Number(to) - Number(from) };
}

/** A trace of four annotated steps; each copies 1 MB, then runs kernels that are busy 5% of the time. */
function sparse() {
  const events = [];
  const at = (ts, dur, cat, name, pid, tid, args) => events.push({ ph: 'X', ts, dur, cat, name, pid, tid, args });
  for (let step = 0; step < 4; step++) {
    const ts = 1_000_000 + step * 10_000;
    at(ts, 9_990, 'user_annotation', `ProfilerStep#${41 + step}`, 7, 7, {});
    const copy = 100_000 * step + 1;
    at(ts + 10, 200, 'cuda_runtime', 'cudaMemcpyAsync', 7, 7, { correlation: copy });
    at(ts + 60, 100, 'gpu_memcpy', 'Memcpy HtoD (Pageable -> Device)', 0, 1, { correlation: copy, device: 0, stream: 1, bytes: 1_000_000 });
    for (let i = 0; i < 96; i++) {
      const correlation = 100_000 * step + 10 + i;
      at(ts + 300 + 100 * i, 4, 'cuda_runtime', 'cudaLaunchKernel', 7, 7, { correlation });
      at(ts + 310 + 100 * i, 5, 'kernel', i % 2 ? 'odd_kernel' : 'even_kernel', 0, 1, { correlation, device: 0, stream: 1 });
    }
  }
  const path = join(root, 'target', 'pages', 'sparse.json');
  writeFileSync(path, JSON.stringify({ traceEvents: events }));
  return path;
}

test('w, a, s and d zoom and pan while the pointer is over the timeline, and 1 works after Escape', async () => {
  const { page } = await open(browser, pageOf('keys', 'diagnose', fixture('launch_bound.json.gz')));
  await canvasOf(page).hover({ position: { x: 600, y: 90 } });
  const first = await view(page);
  await page.keyboard.press('w');
  const near = await view(page);
  assert.ok(Math.abs(near.length / first.length - 0.6) < 0.01, `${near.length / first.length}`);
  await page.keyboard.press('d');
  const right = await view(page);
  assert.ok(Math.abs((right.from - near.from) / near.length - 0.15) < 0.01);
  await page.keyboard.press('a');
  await page.keyboard.press('s');
  const back = await view(page);
  assert.ok(Math.abs(back.length / first.length - 1) < 0.01);
  await page.keyboard.press('w');
  await page.keyboard.press('Escape');
  await page.keyboard.press('1');
  assert.ok((await view(page)).length > first.length * 0.99);
  // Elsewhere on the page the keys are free.
  await page.mouse.move(5, 5);
  const before = await view(page);
  await page.keyboard.press('w');
  assert.deepEqual(await view(page), before);
  await page.close();
});

test('the wheel alone scrolls the page, even after a click on the timeline', async () => {
  const { page } = await open(browser, pageOf('scroll', 'diagnose', fixture('launch_bound.json.gz')));
  await canvasOf(page).scrollIntoViewIfNeeded();
  await canvasOf(page).click({ position: { x: 600, y: 90 } });
  const [top, shown] = [await page.evaluate(() => scrollY), await view(page)];
  await page.mouse.wheel(0, -300);
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => scrollY), top - 300);
  assert.deepEqual(await view(page), shown);
  await page.close();
});

test('search counts the matches, fades the rest, and goes to the next and previous one', async () => {
  const { page } = await open(browser, pageOf('search', 'diagnose', sparse()));
  const details = () => page.textContent('.details b');
  const found = () => page.textContent('.tools .found');
  await canvasOf(page).focus();
  await page.keyboard.press('/');
  await page.keyboard.type('ODD_kern');
  assert.equal(await found(), '192');
  await page.keyboard.press('Enter');
  assert.equal(await details(), 'odd_kernel');
  assert.equal(await found(), '1 of 192');
  await page.keyboard.press('Enter');
  assert.equal(await found(), '2 of 192');
  await page.getByLabel('Next match').click();
  assert.equal(await found(), '3 of 192');
  await page.getByLabel('Previous match').click();
  assert.equal(await found(), '2 of 192');
  await page.locator('.tools input').focus();
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('Shift+Enter');
  assert.equal(await found(), '192 of 192');
  await screenshot(page, 'search', { fullPage: false });
  await page.locator('.tools input').fill('no such kernel');
  assert.equal(await found(), 'no match');
  await page.locator('.tools input').focus();
  await page.keyboard.press('Escape');
  assert.equal(await found(), '');
  await page.close();
});

test('a range shows its duration, its bytes and its rates', async () => {
  const { page } = await open(browser, pageOf('range', 'diagnose', sparse()));
  await canvasOf(page).scrollIntoViewIfNeeded();
  const box = await canvasOf(page).boundingBox();
  const { from, length } = await view(page);
  const x = (ns) => box.x + 150 + ((ns - from) / length) * (box.width - 150);
  const details = () => page.textContent('.details');
  // Dragging on the axis measures; the first step and its copy are in the range.
  await page.mouse.move(x(-50_000), box.y + 8);
  await page.mouse.down();
  await page.mouse.move(x(9_500_000), box.y + 8, { steps: 4 });
  await page.mouse.up();
  assert.match(await details(), /^9\.50 ms selected, from 0 ns to 9\.\d+ ms/);
  assert.match(await details(), /H2D copies 100 µs \(1%\), 1\.00 MB at 10\.0 GB\/s/);
  assert.match(await details(), /compute 4\d\d µs \(5%\)/);
  assert.deepEqual(await view(page), { from, to: from + length, length });
  await screenshot(page, 'range', { fullPage: false });
  // Shift and a drag do the same on the lanes.
  await canvasOf(page).focus();
  await page.keyboard.press('Escape');
  assert.doesNotMatch(await details(), /selected, from/);
  await page.keyboard.down('Shift');
  await page.mouse.move(x(1_000_000), box.y + 90);
  await page.mouse.down();
  await page.mouse.move(x(2_000_000), box.y + 90, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  assert.match(await details(), /^(1\.00 ms|1000 µs|9\d\d µs) selected/);
  // m measures the selected segment.
  await page.keyboard.press('Escape');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('m');
  assert.match(await details(), /5\.00 µs selected/);
  await page.close();
});

test('arrows lead from work to its call and from a call to its work', async () => {
  const { page } = await open(browser, pageOf('arrows', 'diagnose', sparse()));
  const name = () => page.textContent('.details b');
  await canvasOf(page).focus();
  await page.keyboard.press('ArrowDown');
  assert.match(await name(), /^(odd|even)_kernel$/);
  const kernel = await page.textContent('.details');
  await page.waitForTimeout(80);
  assert.equal((await data(page)).launches, '1');
  assert.match(kernel, /launched by cudaLaunchKernel/);
  await page.keyboard.press('f');
  await screenshot(page, 'arrow', { fullPage: false });
  await page.keyboard.press('g');
  assert.equal(await name(), 'cudaLaunchKernel');
  assert.match(await page.textContent('.details'), /launched (odd|even)_kernel/);
  await page.keyboard.press('g');
  assert.equal(await page.textContent('.details'), kernel);
  await page.close();
});

test('lanes are as tall as they are busy: 5% busy looks 5% busy', async () => {
  const { page } = await open(browser, pageOf('sparse', 'diagnose', sparse()));
  await page.waitForTimeout(150);
  // Pixels in the color of compute, as a share of the lane; single kernels are narrower than a pixel here.
  const share = await canvasOf(page).evaluate((canvas) => {
    const ratio = canvas.width / canvas.clientWidth;
    const [top, height, left] = [65, 20, 160].map((pixels) => Math.round(pixels * ratio));
    const { data } = canvas.getContext('2d').getImageData(left, top, canvas.width - left, height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] < 90 && data[i + 1] > 90 && data[i + 1] < 160 && data[i + 2] > 150) found++;
    return found / (data.length / 4);
  });
  assert.ok(share > 0.02 && share < 0.09, `${share}`);
  await page.close();
});

test('steps have the numbers of their annotations, in the timeline and in the chart', async () => {
  const { page } = await open(browser, pageOf('numbers', 'diagnose', sparse()));
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  for (const chart of ['.timeline', '.steps']) {
    const text = await page.locator(`${chart} svg text`).allTextContents();
    for (const step of ['step 41', 'step 42', 'step 43', 'step 44']) assert.ok(text.includes(step), `${chart}: ${text}`);
  }
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  await canvasOf(page).focus();
  await page.keyboard.press('ArrowDown');
  assert.match(await page.textContent('.details'), /step 4[1-4]/);
  await page.close();
});

test('the critical path is an overlay that c and its button switch', async () => {
  const { page } = await open(browser, pageOf('path', 'diagnose', fixture('off_block_pageable_c4.json.gz')));
  const lines = async () => {
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    const number = await page.locator('.timeline svg polyline[stroke-width="3"]').count();
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    return number;
  };
  assert.equal(await lines(), 0);
  const button = page.getByRole('button', { name: 'Show the critical path' });
  await button.click();
  assert.equal(await button.getAttribute('aria-pressed'), 'true');
  assert.ok((await lines()) > 20, `${await lines()}`);
  await screenshot(page, 'critical_path');
  await canvasOf(page).focus();
  await page.keyboard.press('c');
  assert.equal(await button.getAttribute('aria-pressed'), 'false');
  assert.equal(await lines(), 0);
  await page.close();
});

test('the tooltip is never on its lane, and a click hides it', async () => {
  const { page } = await open(browser, pageOf('tooltip', 'diagnose', fixture('off_block_pageable_c4.json.gz')));
  await canvasOf(page).scrollIntoViewIfNeeded();
  const box = await canvasOf(page).boundingBox();
  const tooltip = page.locator('.tooltip');
  let seen = 0;
  for (let y = 44; y < box.height - 4; y += 7) {
    await page.mouse.move(box.x + 0.5 * box.width, box.y + y);
    if (!(await tooltip.isVisible())) continue;
    seen++;
    const { y: top, height } = await tooltip.boundingBox();
    const pointer = box.y + y;
    assert.ok(pointer < top || pointer > top + height, `${pointer} in ${top} to ${top + height}`);
  }
  assert.ok(seen > 4, `${seen}`);
  await page.mouse.move(box.x + 0.5 * box.width, box.y + 75);
  await page.mouse.down();
  await page.mouse.up();
  assert.equal(await tooltip.isVisible(), false);
  await page.close();
});

test('the copy under the pointer is highlighted in the other chart', async () => {
  const { page } = await open(browser, pageOf('linked', 'diagnose', fixture('off_block_pageable_c4.json.gz')));
  await canvasOf(page).focus();
  for (let i = 0; i < 10 && !(await page.textContent('.details')).includes('H2D copies'); i++) await page.keyboard.press('ArrowDown');
  await page.waitForTimeout(100);
  const current = () => page.locator('.roofline canvas').evaluate((canvas) => canvas.dataset.current);
  assert.match(await current(), /^\d+$/);
  await page.keyboard.press('Escape');
  await page.waitForTimeout(100);
  assert.equal(await current(), '');
  // From a dot to the timeline.
  const roofline = page.locator('.roofline canvas');
  await roofline.scrollIntoViewIfNeeded();
  const box = await roofline.boundingBox();
  let pointed = '';
  for (let y = 20; y < box.height && !pointed; y += 10) {
    for (let x = box.width - 260; x < box.width - 90 && !pointed; x += 10) {
      await page.mouse.move(box.x + x, box.y + y);
      if (await page.locator('.tooltip').isVisible()) {
        await page.waitForTimeout(80);
        pointed = (await data(page)).pointed;
      }
    }
  }
  assert.match(pointed, /^h2d\/\d+$/);
  await page.close();
});

test('a step of the chart is shown in the timeline, with the mouse and the keyboard', async () => {
  const { page } = await open(browser, pageOf('step_chart', 'diagnose', sparse()));
  const chart = page.locator('.steps canvas');
  await chart.focus();
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
  assert.match(await page.textContent('.tooltip'), /^step 43: [\d.]+ ms/);
  await page.keyboard.press('Enter');
  const third = await view(page);
  assert.ok(Math.abs(third.from - 20_000_000) < 1_500_000 && third.length < 12_000_000, JSON.stringify(third));
  const box = await chart.boundingBox();
  await page.mouse.click(box.x + 74 + 0.1 * (box.width - 186), box.y + 100);
  const first = await view(page);
  assert.ok(first.from < 2_000_000, JSON.stringify(first));
  await page.close();
});

test('throughput has the timeline\'s axis, and a drag on it zooms both', async () => {
  const { page } = await open(browser, pageOf('throughput', 'diagnose', sparse()));
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  const ticks = (chart) =>
    page.locator(`${chart} svg polyline`).evaluateAll((all) =>
      all
        .filter((line) => line.getAttribute('style').includes('--line') && /^([\d.]+),[\d.]+ \1,/.test(line.getAttribute('points')))
        .map((line) => line.getAttribute('points').split(',')[0]),
    );
  const [above, below] = [await ticks('.timeline'), await ticks('.throughput')];
  assert.ok(above.length > 2);
  assert.deepEqual([...new Set(below)].sort(), [...new Set(above)].sort());
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  const chart = page.locator('.throughput canvas');
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  const before = await view(page);
  await page.mouse.move(box.x + 400, box.y + 60);
  assert.match(await page.textContent('.tooltip'), /H2D [\d.]+ GB\/s/);
  await page.mouse.down();
  await page.mouse.move(box.x + 600, box.y + 60, { steps: 4 });
  await page.mouse.up();
  const after = await view(page);
  assert.ok(Math.abs(after.length / before.length - 200 / (box.width - 150)) < 0.02, `${after.length / before.length}`);
  await page.close();
});
