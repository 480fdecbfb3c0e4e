// The pages in a real browser: are they what the JSON says, do they obey, and do they keep to themselves?

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { busbound, fixture, launch, open, pageOf, root, screenshot } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const traces = {
  offload_pageable: 'off_block_pageable_c4.json.gz',
  offload_prefetched: 'off_layerwise_d2_c4.json.gz',
  loader_pageable: 'train_pageable.json.gz',
  launch_bound: 'launch_bound.json.gz',
  both_directions: 'swap_duplex.json.gz',
  pipeline: 'pipe_overlap.json.gz',
  graph: 'graph_replay.json.gz',
  compute_bound: 'compute_only_c4.json.gz',
};

for (const [name, file] of Object.entries(traces)) {
  test(`${name}: no error, no request, cards and dots are those of the JSON`, async () => {
    const diagnosis = JSON.parse(busbound('diagnose', fixture(file), '--json'));
    const { page, seen, url } = await open(browser, pageOf(name, 'diagnose', fixture(file)));
    assert.equal(await page.textContent('h1'), diagnosis.verdict.statement);
    assert.equal(await page.locator('.card').count(), diagnosis.findings.length);
    const titles = await page.locator('.card h3').allTextContents();
    diagnosis.findings.forEach((finding, i) => assert.ok(titles[i].includes(finding.title), titles[i]));
    const copies = diagnosis.copies.reduce((sum, group) => sum + group.count - group.without_bytes, 0);
    if (copies > 0) {
      await page.waitForSelector('.roofline canvas[data-dots]');
      assert.equal(await page.getAttribute('.roofline canvas', 'data-dots'), String(copies));
    } else {
      assert.equal(await page.locator('.roofline canvas').count(), 0);
    }
    const limits = await page.locator('.limits li').allTextContents();
    for (const { text } of diagnosis.limitations) {
      assert.ok(limits.includes(text.replaceAll('`', '')), text);
    }
    await screenshot(page, name);
    assert.deepEqual(seen, { errors: [], requests: [url] });
    await page.close();
  });
}

test('a trace without GPU events has a page of words, and lanes of the host', async () => {
  const { page, seen } = await open(browser, pageOf('cpu_only', 'diagnose', fixture('cpuonly_block_pageable.json.gz')));
  assert.match(await page.textContent('h1'), /^Not told/);
  assert.match(await page.textContent('.whatif'), /Nothing is predicted/);
  assert.deepEqual(seen.errors, []);
  await screenshot(page, 'cpu_only');
  await page.close();
});

test('zooming to an event shows its name and bytes', async () => {
  const file = fixture(traces.offload_pageable);
  const events = JSON.parse(gunzipSync(readFileSync(file))).traceEvents;
  const copies = events.filter((event) => event.cat === 'gpu_memcpy').sort((a, b) => a.ts - b.ts);
  const { page } = await open(browser, pageOf('zoom', 'diagnose', file));
  const canvas = page.locator('.timeline canvas');
  await canvas.focus();
  const details = () => page.textContent('.details');
  // Down to the lane of copies, back to its first piece, and on to the third.
  for (let i = 0; i < 10 && !(await details()).includes('H2D copies'); i++) await page.keyboard.press('ArrowDown');
  assert.match(await details(), /H2D copies/);
  for (let i = 0; i < 60; i++) await page.keyboard.press('p');
  await page.keyboard.press('n');
  await page.keyboard.press('n');
  const wanted = copies[2];
  const text = await details();
  assert.ok(text.includes(wanted.name), text);
  assert.ok(text.includes(`${wanted.args.bytes.toLocaleString('en-US')} bytes`), text);
  // Filling the view with it puts it under the pointer, wherever that is in its row.
  await page.keyboard.press('f');
  await page.waitForTimeout(100);
  await screenshot(page, 'zoomed_to_a_copy', { fullPage: false });
  const box = await canvas.boundingBox();
  let tooltip = '';
  for (let y = 40; y < box.height && !tooltip.includes('Memcpy'); y += 8) {
    await page.mouse.move(box.x + 0.6 * box.width, box.y + y);
    if (await page.locator('.tooltip').isVisible()) tooltip = await page.textContent('.tooltip');
  }
  assert.ok(tooltip.includes(wanted.name) && tooltip.includes('168 MB'), tooltip);
  await page.close();
});

test('the wheel zooms where the pointer is, dragging moves, 0 shows all', async () => {
  const { page } = await open(browser, pageOf('wheel', 'diagnose', fixture(traces.launch_bound)));
  const canvas = page.locator('.timeline canvas');
  const picture = () => canvas.screenshot();
  await canvas.click({ position: { x: 600, y: 15 } });
  const box = await canvas.boundingBox();
  const first = await picture();
  for (let i = 0; i < 20; i++) await page.mouse.wheel(0, -240);
  await page.waitForTimeout(100);
  const near = await picture();
  assert.notDeepEqual(near, first);
  await page.mouse.move(box.x + 600, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await page.waitForTimeout(100);
  assert.notDeepEqual(await picture(), near);
  await canvas.focus();
  await page.keyboard.press('0');
  await page.waitForTimeout(100);
  const all = await picture();
  await page.keyboard.press('+');
  await page.keyboard.press('-');
  await page.keyboard.press('0');
  await page.waitForTimeout(100);
  assert.deepEqual(await picture(), all);
  await page.close();
});

test('a finding is marked where it happens, and a second press takes the mark away', async () => {
  const { page } = await open(browser, pageOf('marked', 'diagnose', fixture(traces.loader_pageable)));
  const button = page.locator('button.show').first();
  const canvas = page.locator('.timeline canvas');
  const before = await canvas.screenshot();
  await button.click();
  await page.waitForTimeout(900);
  assert.equal(await button.getAttribute('aria-pressed'), 'true');
  assert.notDeepEqual(await canvas.screenshot(), before);
  await screenshot(page, 'finding_marked', { fullPage: false });
  await button.click();
  assert.equal(await button.getAttribute('aria-pressed'), 'false');
  await page.close();
});

test('a dot leads to its copy in the timeline', async () => {
  const { page } = await open(browser, pageOf('dot', 'diagnose', fixture(traces.offload_pageable)));
  const canvas = page.locator('.roofline canvas');
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  let found = false;
  for (let y = 20; y < box.height && !found; y += 12) {
    for (let x = box.width - 100; x < box.width && !found; x += 12) {
      await page.mouse.move(box.x + x, box.y + y);
      found = await page.locator('.tooltip').isVisible();
      if (found) await page.mouse.click(box.x + x, box.y + y);
    }
  }
  assert.ok(found, 'no dot was found');
  assert.match(await page.textContent('.details'), /Memcpy HtoD \(Pageable -> Device\)/);
  await page.close();
});

test('names that are HTML or script stay text', async () => {
  const names = [
    '<script>window.hacked = 1</script>',
    '</script><img src=x onerror="window.hacked = 2">',
    `"><svg onload='window.hacked = 3'>`,
    '${window.hacked = 4}`\u2028{{7*7}}',
  ];
  const events = [];
  const at = (ts, dur, cat, name, pid, tid, args) => events.push({ ph: 'X', ts, dur, cat, name, pid, tid, args });
  for (let step = 0; step < 4; step++) {
    const ts = 1000 + step * 1000;
    at(ts, 900, 'user_annotation', names[0], 7, 7, {});
    at(ts, 900, 'cpu_op', names[2], 7, 7, {});
    names.forEach((name, i) => {
      const correlation = 100 * step + i + 1;
      at(ts + 100 * i, 20, 'cuda_runtime', 'cudaLaunchKernel', 7, 7, { correlation });
      at(ts + 30 + 100 * i, 60, 'kernel', name, 0, 1, { correlation, device: 0, stream: 1 });
    });
    const correlation = 100 * step + 50;
    at(ts + 500, 300, 'cuda_runtime', 'cudaMemcpyAsync', 7, 7, { correlation });
    const copy = { correlation, device: 0, stream: 1, bytes: 1 << 20 };
    at(ts + 510, 280, 'gpu_memcpy', 'Memcpy HtoD (Pageable -> Device)', 0, 1, copy);
  }
  events.push({ ph: 'M', name: 'thread_name', pid: 7, tid: 7, ts: 0, args: { name: names[1] } });
  const deviceProperties = [{ id: 0, name: names[1] }];
  const path = join(root, 'target', 'pages', 'hostile <b>.json');
  writeFileSync(path, JSON.stringify({ deviceProperties, traceEvents: events }));
  for (const command of ['diagnose', 'whatif', 'survey']) {
    const { page, seen, url } = await open(browser, pageOf(`hostile_${command}`, command, path), { wait: command !== 'survey' });
    if (command !== 'survey') {
      await page.locator('.timeline canvas').focus();
      const shown = new Set();
      for (let lane = 0; lane < 6; lane++) {
        await page.keyboard.press('ArrowDown');
        for (let i = 0; i < 4; i++) {
          shown.add(await page.textContent('.details b'));
          await page.keyboard.press('n');
        }
      }
      for (const name of names.slice(0, 3)) assert.ok(shown.has(name), `${name} in ${[...shown]}`);
      await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
      assert.equal(await page.locator('.details img, .details svg, .still image, .still script').count(), 0);
      await screenshot(page, `hostile_${command}`);
    }
    assert.equal(await page.locator('img, iframe, object').count(), 0);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.deepEqual(seen, { errors: [], requests: [url] });
    await page.close();
  }
});

test('two runs are laid on one scale, with a table of what changed', async () => {
  const files = [fixture(traces.offload_pageable), fixture(traces.offload_prefetched)];
  const comparison = JSON.parse(busbound('compare', ...files, '--json'));
  const { page, seen } = await open(browser, pageOf('compare', 'compare', ...files));
  assert.equal(await page.textContent('h1'), comparison.statement);
  assert.equal(await page.locator('.tables tbody tr').count(), comparison.figures.length);
  assert.equal(await page.locator('.share-bar').count(), 2);
  assert.equal(await page.locator('.throughput .uplot').count(), 2);
  assert.deepEqual(seen.errors, []);
  await screenshot(page, 'compare');
  await page.close();
});

test('of several runs one is shown at a time', async () => {
  const files = [fixture(traces.offload_pageable), fixture(traces.launch_bound)];
  const { page, seen } = await open(browser, pageOf('several', 'diagnose', ...files));
  assert.equal(await page.locator('article.run:visible').count(), 1);
  assert.match(await page.locator('h1:visible').textContent(), /^Transfer-bound/);
  await page.locator('nav.runs a').nth(1).click();
  await page.waitForSelector('#run-1[data-drawn="done"]');
  assert.match(await page.locator('h1:visible').textContent(), /^Launch-bound/);
  assert.deepEqual(seen.errors, []);
  await page.close();
});

test('what is predicted stands first where it was asked for, with its lanes', async () => {
  const file = fixture(traces.offload_pageable);
  const answer = JSON.parse(busbound('whatif', file, '--json'));
  const { page } = await open(browser, pageOf('whatif', 'whatif', file));
  assert.equal(await page.textContent('h1'), answer.statement.replaceAll('`', ''));
  assert.equal(await page.locator('.scenario').count(), answer.scenarios.length + 1);
  await screenshot(page, 'whatif');
  await page.close();
});

test('on paper every chart is a drawing, with a mark for each copy', async () => {
  const file = fixture(traces.offload_pageable);
  const { page } = await open(browser, pageOf('print', 'diagnose', file));
  const pdf = await page.pdf({ path: join(root, 'target', 'screenshots', 'print.pdf'), format: 'A4' });
  assert.ok(pdf.length > 20_000, `${pdf.length} bytes`);
  await page.emulateMedia({ media: 'print' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.equal(await page.locator('canvas:visible').count(), 0);
  assert.equal(await page.locator('svg.still:visible').count(), 4);
  assert.equal(await page.locator('.roofline svg .mark').count(), 48);
  assert.ok((await page.locator('.timeline svg rect').count()) > 100);
  await screenshot(page, 'print');
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  assert.equal(await page.locator('svg.still').count(), 0);
  await page.close();
});

test('on a phone nothing is wider than the screen', async () => {
  const options = { viewport: { width: 390, height: 844 }, isMobile: true, deviceScaleFactor: 2, hasTouch: true };
  for (const name of ['offload_pageable', 'launch_bound']) {
    const { page } = await open(browser, pageOf(`phone_${name}`, 'diagnose', fixture(traces[name])), options);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${name}: ${width} px`);
    assert.ok(await page.locator('.card').first().isVisible());
    await screenshot(page, `phone_${name}`);
    await page.close();
  }
});

test('in the dark the page is dark, and the button turns it', async () => {
  const path = pageOf('dark', 'diagnose', fixture(traces.offload_pageable));
  const { page } = await open(browser, path, { colorScheme: 'dark' });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await paper(), 'rgb(20, 23, 28)');
  await screenshot(page, 'dark');
  await page.locator('button.theme').click();
  assert.equal(await paper(), 'rgb(255, 255, 255)');
  await page.close();
});

test('without a script the answer is there', async () => {
  const path = pageOf('no_script', 'diagnose', fixture(traces.offload_pageable));
  const { page } = await open(browser, path, { javaScriptEnabled: false, wait: false });
  assert.match(await page.textContent('h1'), /^Transfer-bound/);
  assert.ok(await page.locator('.card').first().isVisible());
  assert.ok(await page.locator('.whatif').isVisible());
  assert.equal(await page.locator('.timeline:visible').count(), 0);
  assert.ok(await page.locator('.limits li').first().isVisible());
  await page.close();
});
