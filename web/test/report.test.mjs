// The pages in a real browser: do they match the JSON, do the controls work, and do they make no requests?

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
  test(`${name}: no errors, no requests, and the cards and dots match the JSON`, async () => {
    const diagnosis = JSON.parse(busbound('diagnose', fixture(file), '--json'));
    const { page, seen, url } = await open(browser, pageOf(name, 'diagnose', fixture(file)));
    const { statement, because } = diagnosis.verdict;
    const heading = await page.textContent('h1');
    // What can be gained comes before what bounds the run.
    assert.ok(heading === statement || heading.endsWith(` ${because}`), heading);
    assert.equal(await page.locator('.card').count(), diagnosis.findings.length);
    const titles = await page.locator('.card h3').allTextContents();
    for (const [i, finding] of diagnosis.findings.entries()) assert.ok(titles[i].includes(finding.title), titles[i]);
    // Copies within a GPU do not cross the link.
    const onBus = diagnosis.copies.filter((group) => group.utilization !== null);
    const copies = onBus.reduce((sum, group) => sum + group.count - group.without_bytes, 0);
    if (copies > 0) {
      await page.waitForSelector('.roofline canvas[data-dots]');
      const note = (await page.locator('.roofline .chart-note').allTextContents()).join(' ');
      const omitted = Number((note.match(/Not drawn: ([\d,]+) cop/)?.[1] ?? '0').replaceAll(',', ''));
      assert.equal(Number(await page.getAttribute('.roofline canvas', 'data-dots')) + omitted, copies);
    } else {
      assert.equal(await page.locator('.roofline canvas').count(), 0);
    }
    const limits = await page.locator('.limits-section li').allTextContents();
    for (const { text } of diagnosis.limitations) {
      const shown = text.replaceAll('`', '');
      // The link to its explanation comes after it.
      assert.ok(limits.some((limit) => limit.startsWith(shown[0].toUpperCase() + shown.slice(1))), text);
    }
    await screenshot(page, name);
    assert.deepEqual(seen, { errors: [], requests: [url] });
    await page.close();
  });
}

test('a trace without GPU events has a page with text and host lanes', async () => {
  const { page, seen } = await open(browser, pageOf('cpu_only', 'diagnose', fixture('cpuonly_block_pageable.json.gz')));
  assert.match(await page.textContent('h1'), /^Inconclusive/);
  assert.match(await page.textContent('.whatif-section'), /No predictions/);
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
  // Down to the lane of copies, back to its first segment, and on to the third.
  for (let i = 0; i < 10 && !(await details()).includes('H2D copies'); i++) await page.keyboard.press('ArrowDown');
  assert.match(await details(), /H2D copies/);
  for (let i = 0; i < 60; i++) await page.keyboard.press('p');
  await page.keyboard.press('n');
  await page.keyboard.press('n');
  const wanted = copies[2];
  const text = await details();
  assert.ok(text.includes(wanted.name), text);
  assert.ok(text.includes(`${wanted.args.bytes.toLocaleString('en-US')} bytes`), text);
  // Zooming to it puts it under the pointer, wherever the pointer is in its row.
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

/** The visible time range, in nanoseconds. */
async function view(page) {
  await page.waitForTimeout(80);
  const { from, to } = await page.locator('.timeline canvas').evaluate((canvas) => ({ ...canvas.dataset }));
  return { from: Number(from), to: Number(to) };
}

test('Ctrl and the wheel zoom at the pointer, dragging and keys pan and zoom, 0 shows everything', async () => {
  const { page } = await open(browser, pageOf('wheel', 'diagnose', fixture(traces.launch_bound)));
  const canvas = page.locator('.timeline canvas');
  await canvas.click({ position: { x: 600, y: 15 } });
  const box = await canvas.boundingBox();
  const left = 150;
  const timeAt = ({ from, to }, x) => from + ((x - left) / (box.width - left)) * (to - from);
  const first = await view(page);
  await page.keyboard.down('Control');
  for (let i = 0; i < 5; i++) await page.mouse.wheel(0, -240);
  await page.keyboard.up('Control');
  const near = await view(page);
  assert.ok(near.to - near.from < 0.2 * (first.to - first.from), `${near.to - near.from}`);
  const moved = Math.abs(timeAt(near, 600) - timeAt(first, 600)) / (near.to - near.from);
  assert.ok(moved < 0.01, `the time under the pointer moved by ${moved} of the view`);
  await page.mouse.move(box.x + 600, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 60, { steps: 5 });
  await page.mouse.up();
  const dragged = await view(page);
  assert.ok(Math.abs(timeAt(dragged, 300) - timeAt(near, 600)) < 0.01 * (near.to - near.from));
  await canvas.focus();
  await page.keyboard.press('+');
  const zoomed = await view(page);
  assert.ok(Math.abs((zoomed.to - zoomed.from) / (dragged.to - dragged.from) - 0.6) < 0.01);
  await page.keyboard.press('-');
  await page.keyboard.press('ArrowRight');
  const right = await view(page);
  assert.ok(Math.abs((right.from - dragged.from) / (dragged.to - dragged.from) - 0.15) < 0.01);
  await page.keyboard.press('0');
  const all = await view(page);
  assert.ok(all.from <= 0 && all.to - all.from >= first.to - first.from);
  // Zooming stops at the precision of numbers.
  for (let i = 0; i < 60; i++) await page.keyboard.press('+');
  const deep = await view(page);
  assert.ok(deep.to - deep.from >= 19.9 && deep.to - deep.from < 100, `${deep.to - deep.from} ns`);
  await page.close();
});

/** Number of pixels in the mark color on the line above the lanes. */
function marks(page) {
  return page.locator('.timeline canvas').evaluate((canvas) => {
    const [r, g, b] = [0xc8, 0x10, 0x2e];
    const ratio = canvas.width / canvas.clientWidth;
    const { data } = canvas.getContext('2d').getImageData(0, Math.round(38 * ratio), canvas.width, 1);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found++;
    return found;
  });
}

test('a finding is marked where it occurs, and a second click or Escape removes the mark', async () => {
  const { page } = await open(browser, pageOf('marked', 'diagnose', fixture(traces.loader_pageable)));
  const button = page.locator('button.show').first();
  assert.equal(await marks(page), 0);
  await button.click();
  await page.waitForTimeout(900);
  assert.equal(await button.getAttribute('aria-pressed'), 'true');
  // The GPU waits for the data loader 42% of the time.
  const marked = await marks(page);
  assert.ok(marked > 0.3 * 1100 && marked < 0.6 * 1100, `${marked} pixels`);
  await screenshot(page, 'finding_marked', { fullPage: false });
  await button.click();
  await page.waitForTimeout(100);
  assert.equal(await button.getAttribute('aria-pressed'), 'false');
  assert.equal(await marks(page), 0);
  await button.click();
  await page.locator('.timeline canvas').focus();
  await page.keyboard.press('Escape');
  await page.waitForTimeout(100);
  assert.equal(await button.getAttribute('aria-pressed'), 'false');
  assert.equal(await marks(page), 0);
  await page.close();
});

test('a click on a dot shows its copy in the timeline, even in a folded group', async () => {
  const { page } = await open(browser, pageOf('dot', 'diagnose', fixture(traces.offload_pageable)));
  await page.locator('.timeline canvas').click({ position: { x: 40, y: 46 } });
  const canvas = page.locator('.roofline canvas');
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  let tooltip = null;
  for (let y = 20; y < box.height && !tooltip; y += 10) {
    for (let x = box.width - 260; x < box.width && !tooltip; x += 10) {
      await page.mouse.move(box.x + x, box.y + y);
      if (await page.locator('.tooltip').isVisible()) {
        tooltip = await page.textContent('.tooltip');
        await page.mouse.click(box.x + x, box.y + y);
      }
    }
  }
  assert.ok(tooltip, 'no dot was found');
  const details = await page.textContent('.details');
  assert.match(details, /Memcpy HtoD \(Pageable -> Device\)/);
  const [, taken, from] = tooltip.match(/GB\/s([\d.]+ ms), from ([\d.]+) ms/);
  assert.ok(details.includes(taken), `${taken} in ${details}`);
  const shown = Number(details.match(/from ([\d.]+) ms/)[1]);
  assert.ok(Math.abs(shown - Number(from)) < 0.6, `${from} ms and ${shown} ms`);
  await page.close();
});

test('names that contain HTML or scripts stay text', async () => {
  const names = [
    '<script>window.hacked = 1</script>',
    '</script><img src=x onerror="window.hacked = 2">',
    `"><svg onload='window.hacked = 3'>`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a hostile name is meant to look like a template
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
  const commands = {
    diagnose: ['diagnose', path],
    whatif: ['whatif', path],
    survey: ['survey', path],
    compare: ['compare', path, path],
    gate: ['gate', path, '--require', 'step_p50 < 1000'],
  };
  for (const [command, args] of Object.entries(commands)) {
    const hasDrawings = ['diagnose', 'whatif', 'compare'].includes(command);
    const { page, seen, url } = await open(browser, pageOf(`hostile_${command}`, ...args), { wait: hasDrawings });
    if (command === 'diagnose' || command === 'whatif') {
      await page.locator('.timeline canvas').focus();
      const shown = new Set();
      for (let lane = 0; lane < 6; lane++) {
        await page.keyboard.press('ArrowDown');
        for (let i = 0; i < 4; i++) {
          shown.add(await page.textContent('.details b'));
          await page.keyboard.press('n');
        }
      }
      for (const name of names) assert.ok(shown.has(name), `${name} in ${[...shown]}`);
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

test('unusual traces have pages too', async () => {
  const x = (ts, dur, cat, name, pid, tid, args = {}) => ({ ph: 'X', ts, dur, cat, name, pid, tid, args });
  const gpu = (device, stream, correlation) => ({ device, stream, correlation });
  const odd = {
    nothing_but_an_operator: [x(10, 5, 'cpu_op', 'aten::add', 1, 1)],
    without_length: [x(5, 0, 'kernel', 'k', 0, 1, gpu(0, 1, 1)), x(5, 0, 'kernel', 'k', 0, 1, gpu(0, 1, 2)), x(9, 1, 'kernel', 'k', 0, 1, gpu(0, 1, 3))],
    call_after_its_kernel: [x(50, 5, 'cuda_runtime', 'cudaLaunchKernel', 1, 1, { correlation: 1 }), x(40, 5, 'kernel', 'k', 0, 1, gpu(0, 1, 1))],
    two_gpus: [0, 1].flatMap((device) => [
      x(10, 50, 'kernel', 'k', device, 1, gpu(device, 1, 10 + device)),
      x(70, 50, 'gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', device, 1, { ...gpu(device, 1, 20 + device), bytes: 1e6 }),
    ]),
    twelve_concurrent_streams: Array.from({ length: 12 }, (_, i) => x(10 + i, 100, 'kernel', 'k', 0, i, gpu(0, i, i + 1))),
    copies_without_bytes: [x(10, 50, 'gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', 0, 1, gpu(0, 1, 1)), x(70, 5, 'kernel', 'k', 0, 1, gpu(0, 1, 2))],
    far_apart: [x(0, 1, 'kernel', 'k', 0, 1, gpu(0, 1, 1)), x(1.7e15, 1, 'kernel', 'k', 0, 1, gpu(0, 1, 2))],
  };
  for (const [name, traceEvents] of Object.entries(odd)) {
    const path = join(root, 'target', 'pages', `${name}.json`);
    writeFileSync(path, JSON.stringify({ traceEvents }));
    const { page, seen } = await open(browser, pageOf(`odd_${name}`, 'diagnose', path));
    if ((await page.locator('.timeline canvas').count()) > 0) {
      await page.locator('.timeline canvas').focus();
      for (const key of ['0', '1', 'ArrowDown', 'n', 'f', 'p', 'o', ...Array(40).fill('+')]) await page.keyboard.press(key);
    }
    const lost = await page.locator('.limits-section li').allTextContents();
    if (name === 'twelve_concurrent_streams') assert.ok(lost.some((text) => text.startsWith('Not drawn: 4 GPU events')), `${lost}`);
    const charts = await page.locator('.throughput canvas').count();
    assert.equal(charts, name === 'two_gpus' ? 2 : 0, name);
    assert.deepEqual(seen.errors, [], name);
    await page.close();
  }
});

test('a truncated file shows where the GPU recording ends', async () => {
  const { page, seen } = await open(browser, pageOf('cut', 'diagnose', fixture('hostile/cut_in_gpu.json.gz')));
  await page.locator('.timeline canvas').focus();
  await page.keyboard.press('0');
  await screenshot(page, 'cut');
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.match(await page.textContent('.timeline svg'), /not recorded: the file is truncated/);
  assert.deepEqual(seen.errors, []);
  await page.close();
});

test('two runs share one scale, with a table of what changed', async () => {
  const files = [fixture(traces.offload_pageable), fixture(traces.offload_prefetched)];
  const comparison = JSON.parse(busbound('compare', ...files, '--json'));
  const { page, seen } = await open(browser, pageOf('compare', 'compare', ...files));
  assert.equal(await page.textContent('h1'), comparison.statement);
  assert.equal(await page.locator('.tables tbody tr').count(), comparison.figures.length);
  assert.equal(await page.locator('.share-bar').count(), 2);
  assert.equal(await page.locator('.throughput canvas').count(), 2);
  assert.deepEqual(seen.errors, []);
  await screenshot(page, 'compare');
  await page.close();
});

test('several runs are shown as a summary first, then one at a time', async () => {
  const files = [fixture(traces.offload_pageable), fixture(traces.launch_bound)];
  const { page, seen } = await open(browser, pageOf('several', 'diagnose', ...files));
  assert.equal(await page.locator('article.run:visible').count(), 1);
  assert.match(await page.locator('#summary:visible h1').textContent(), /^2 runs: /);
  await page.locator('nav.runs a').nth(1).click();
  await page.waitForSelector('#run-0[data-drawn="done"]');
  assert.equal(await page.locator('article.run:visible').count(), 1);
  assert.match(await page.locator('h1:visible').textContent(), /^Transfer-bound/);
  await page.locator('nav.runs a').nth(2).click();
  await page.waitForSelector('#run-1[data-drawn="done"]');
  assert.match(await page.locator('h1:visible').textContent(), /^Launch-bound/);
  assert.deepEqual(seen.errors, []);
  await page.close();
});

test('the page of a prediction leads with it and shows its lanes', async () => {
  const file = fixture(traces.offload_pageable);
  const answer = JSON.parse(busbound('whatif', file, '--json'));
  const { page } = await open(browser, pageOf('whatif', 'whatif', file));
  assert.equal(await page.textContent('h1'), answer.statement.replaceAll('`', ''));
  const shown = page.locator('.scenarios[aria-label*="with changes"] .scenario');
  assert.equal(await shown.count(), answer.scenarios.length + 1);
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.ok((await page.textContent('.timeline svg')).includes(`Predicted with ${answer.scenarios[0].apply.join(' + ')}`));
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  await screenshot(page, 'whatif');
  await page.close();
});

test('in print every chart is an SVG, with a mark for each copy', async () => {
  const file = fixture(traces.offload_pageable);
  const { page } = await open(browser, pageOf('print', 'diagnose', file));
  const pdf = await page.pdf({ path: join(root, 'target', 'screenshots', 'print.pdf'), format: 'A4' });
  assert.ok(pdf.length > 20_000, `${pdf.length} bytes`);
  await page.emulateMedia({ media: 'print' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.equal(await page.locator('canvas:visible').count(), 0);
  assert.equal(await page.locator('svg.still:visible').count(), 5);
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

test('the page follows the dark mode, and the button switches it', async () => {
  const path = pageOf('dark', 'diagnose', fixture(traces.offload_pageable));
  const { page } = await open(browser, path, { colorScheme: 'dark' });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await paper(), 'rgb(20, 23, 28)');
  await screenshot(page, 'dark');
  await page.locator('button.theme').click();
  assert.equal(await paper(), 'rgb(255, 255, 255)');
  // The charts switch too: the bus chart has the color of pageable copies of the light mode.
  await page.waitForTimeout(150);
  const orange = await page.locator('.throughput canvas').evaluate((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] === 0xbb && data[i + 1] === 0x3f && data[i + 2] === 0) found++;
    return found;
  });
  assert.ok(orange > 50, `${orange} pixels`);
  await page.close();
});

test('without JavaScript the text is readable', async () => {
  const path = pageOf('no_script', 'diagnose', fixture(traces.offload_pageable));
  const { page } = await open(browser, path, { javaScriptEnabled: false, wait: false });
  assert.match(await page.textContent('h1'), /^Transfer-bound/);
  assert.ok(await page.locator('.card').first().isVisible());
  assert.ok(await page.locator('.whatif-section').isVisible());
  assert.equal(await page.locator('.timeline:visible').count(), 0);
  assert.ok(await page.locator('.limits-section li').first().isVisible());
  await page.close();
});
