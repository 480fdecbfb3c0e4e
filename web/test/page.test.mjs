// The page around the charts: navigation, theme, fixes to copy, explanations in place, before and after.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { busbound, fixture, launch, open, pageOf, screenshot } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const PAGEABLE = 'off_block_pageable_c4.json.gz';

test('a page without its data is at most 150 kB', () => {
  const page = readFileSync(pageOf('size', 'diagnose', fixture(PAGEABLE)), 'utf8');
  const [data] = page.match(/class="data">[^<]*</);
  assert.ok(page.length - data.length < 150_000, `${page.length - data.length} bytes`);
});

test('the title begins with the name of the file', async () => {
  const { page } = await open(browser, pageOf('title', 'diagnose', fixture(PAGEABLE)));
  assert.match(await page.title(), /^off_block_pageable_c4\.json\.gz: Transfer-bound/);
  await page.close();
});

test('every section is in the navigation and is reached from it', async () => {
  const { page } = await open(browser, pageOf('navigation', 'diagnose', fixture(PAGEABLE)));
  const links = page.locator('nav.sections a');
  const sections = await page.locator('article.run > section').count();
  assert.equal(await links.count(), sections + 1);
  await page.getByRole('link', { name: 'Timeline', exact: true }).click();
  await page.waitForTimeout(200);
  const { top } = await page.locator('#timeline-0').evaluate((section) => section.getBoundingClientRect().toJSON());
  assert.ok(top >= 0 && top < 120, `${top} px`);
  assert.equal(await page.locator('nav.sections a[aria-current="true"]').textContent(), 'Timeline');
  // It stays in view.
  assert.ok(await links.first().isVisible());
  await page.close();
});

test('the chosen colors are remembered', async () => {
  const path = pageOf('remembered', 'diagnose', fixture(PAGEABLE));
  const { page } = await open(browser, path);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await paper(), 'rgb(255, 255, 255)');
  await page.locator('button.theme').click();
  assert.equal(await paper(), 'rgb(20, 23, 28)');
  await page.reload();
  await page.waitForSelector('article.run[data-drawn="done"]');
  assert.equal(await paper(), 'rgb(20, 23, 28)');
  await page.close();
});

test('the bar splits idle time by cause, and its parts are those of the JSON', async () => {
  const file = fixture('train_pageable.json.gz');
  const diagnosis = JSON.parse(busbound('diagnose', file, '--json'));
  const { page } = await open(browser, pageOf('bar', 'diagnose', file));
  const legend = await page.locator('header .share .legend li').allTextContents();
  assert.ok(legend.some((text) => text.startsWith('idle: waiting for input')), `${legend}`);
  assert.ok(!legend.some((text) => /^idle [\d.]/.test(text)), `${legend}`);
  const shares = legend.map((text) => Number(text.match(/(\d+)%$/)[1]));
  const sum = shares.reduce((a, b) => a + b, 0);
  assert.ok(Math.abs(sum - 100) <= 3, `${sum}%`);
  assert.ok(diagnosis.idle.length > 0);
  await page.close();
});

test('one color per meaning: no two kinds of work or causes share one', async () => {
  const { page } = await open(browser, pageOf('colors', 'diagnose', fixture(PAGEABLE)));
  const names = ['compute', 'communication', 'h2d', 'd2h', 'other', 'pageable', 'idle-copy', 'idle-launch', 'idle-sync', 'idle-input', 'idle-host', 'idle-gap', 'mark'];
  for (const theme of ['light', 'dark']) {
    await page.evaluate((theme) => (document.documentElement.dataset.theme = theme), theme);
    const colors = await page.evaluate((names) => names.map((name) => getComputedStyle(document.body).getPropertyValue(`--${name}`).trim()), names);
    assert.equal(new Set(colors).size, names.length, `${colors}`);
    const rgb = colors.map((color) => [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16)));
    for (const [i, a] of rgb.entries()) {
      for (const [j, b] of rgb.entries()) {
        const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
        assert.ok(i === j || distance > 28, `${theme}: ${names[i]} and ${names[j]} are ${distance.toFixed(0)} apart`);
      }
    }
  }
  await page.close();
});

test('exposed pageable copies have the color of pageable copies', async () => {
  const { page } = await open(browser, pageOf('exposed', 'diagnose', fixture(PAGEABLE)));
  const part = page.locator('header .share .legend li', { hasText: 'copying only' });
  assert.equal(await part.locator('i.swatch').getAttribute('class'), 'swatch pageable');
  assert.ok(await page.locator('.bounds-section .fill.pageable').first().isVisible());
  await page.close();
});

test('a finding shows before and after, and its fix can be copied', async () => {
  const path = pageOf('copy', 'diagnose', fixture(PAGEABLE));
  const { page } = await open(browser, path);
  assert.match(await page.locator('.card .saving').first().textContent(), /saves .* \(274 → 104 ms\)/);
  await page.evaluate(() => {
    const writeText = async (text) => {
      window.copied = text;
    };
    Object.defineProperty(navigator, 'clipboard', { value: { writeText } });
  });
  await page.locator('button.copy').first().click();
  await page.waitForFunction(() => document.querySelector('button.copy').textContent === 'Copied');
  assert.equal(await page.evaluate(() => window.copied), await page.locator('.card pre code').first().textContent());
  // If the browser refuses, the text is selected.
  await page.evaluate(() => {
    navigator.clipboard.writeText = () => Promise.reject(new Error('no'));
  });
  await page.locator('button.copy').first().click();
  await page.waitForFunction(() => document.querySelector('button.copy').textContent === 'Press Ctrl+C');
  assert.equal(await page.evaluate(() => getSelection().toString().trim()), (await page.locator('.card pre code').first().textContent()).trim());
  await page.close();
});

test('the recorded and the predicted step are flipped', async () => {
  const { page } = await open(browser, pageOf('flip', 'diagnose', fixture(PAGEABLE)));
  const answer = JSON.parse(busbound('whatif', fixture(PAGEABLE), '--json'));
  const side = () => page.locator('.flip canvas').getAttribute('data-side');
  const pixels = () => page.locator('.flip canvas').evaluate((canvas) => canvas.toDataURL());
  assert.equal(await side(), 'before');
  await page.waitForTimeout(100);
  const before = await pixels();
  const after = page.getByRole('button', { name: `Predicted with ${answer.scenarios[0].apply.join(' + ')}: ${answer.scenarios[0].step_ms.toFixed(1)} ms` });
  await after.click();
  await page.waitForTimeout(100);
  assert.equal(await side(), 'after');
  assert.equal(await after.getAttribute('aria-pressed'), 'true');
  assert.notEqual(await pixels(), before);
  await screenshot(page, 'flipped');
  await page.locator('.flip canvas').click();
  assert.equal(await side(), 'before');
  await page.close();
});

test('every cause, figure and limit is explained where it is named', async () => {
  for (const name of [PAGEABLE, 'train_pageable.json.gz', 'launch_bound.json.gz']) {
    const { page } = await open(browser, pageOf(`explained_${name}`, 'diagnose', fixture(name)));
    const links = page.locator('a[href^="#explain-"]');
    const number = await links.count();
    assert.ok(number > 4, `${number} links`);
    for (let i = 0; i < number; i++) {
      const link = links.nth(i);
      await link.click();
      const panel = page.locator('.in-place');
      assert.equal(await panel.count(), 1);
      assert.ok((await panel.textContent()).length > 60, await link.getAttribute('href'));
      assert.equal(await link.getAttribute('aria-expanded'), 'true');
      // Close to the link, and not at the end of the page.
      const [a, b] = [await link.boundingBox(), await panel.boundingBox()];
      assert.ok(b.y - a.y < 700 && b.y >= a.y, `${b.y - a.y} px`);
      await link.click();
      assert.equal(await panel.count(), 0);
    }
    // Each finding has its explanation on its card.
    for (const card of await page.locator('.card').all()) assert.ok((await card.locator('details[id^="explain-"]').count()) === 1);
    await page.close();
  }
});

test('without a script an explanation is reached by its link', async () => {
  const path = pageOf('explained_plain', 'diagnose', fixture(PAGEABLE));
  const { page } = await open(browser, path, { javaScriptEnabled: false, wait: false });
  for (const link of await page.locator('a[href^="#explain-"]').all()) {
    const id = (await link.getAttribute('href')).slice(1);
    assert.equal(await page.locator(`details[id="${id}"]`).count(), 1, id);
  }
  await page.close();
});

test('charts without content are not drawn', async () => {
  const { page } = await open(browser, pageOf('no_copies', 'diagnose', fixture('launch_bound.json.gz')));
  assert.equal(await page.locator('.roofline, .throughput, .copies-section').count(), 0);
  await page.close();
});

test('only the curves that matter are drawn, labeled at their ends', async () => {
  const { page } = await open(browser, pageOf('curves', 'diagnose', fixture(PAGEABLE)));
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  const labels = await page.locator('.roofline svg text').allTextContents();
  assert.ok(labels.includes('H2D pinned') && labels.includes('H2D pageable'), `${labels}`);
  assert.ok(!labels.some((label) => label.startsWith('D2H')), `${labels}`);
  assert.equal(await page.locator('.roofline .legend button').count(), 1);
  await page.close();
});
