// Screenshots of pages for the README and docs/: `cargo xtask gallery`.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { launch, open, pageOf, root } from './test/browser.mjs';

const pageable = 'fixtures/off_block_pageable_c4.json.gz';
const prefetched = 'fixtures/off_layerwise_d2_c4.json.gz';
const profile = ['--machine', 'fixtures/machines/h200.json'];
const pages = {
  offload_pageable: ['diagnose', pageable, ...profile],
  offload_prefetched: ['diagnose', prefetched, ...profile],
  compare: ['compare', pageable, prefetched, ...profile],
};

mkdirSync(join(root, 'docs', 'gallery'), { recursive: true });
const browser = await launch();
for (const [name, args] of Object.entries(pages)) {
  const { page } = await open(browser, pageOf(`gallery_${name}`, ...args));
  if (name === 'offload_pageable') {
    await page.locator('button.show').first().click();
    await page.evaluate(() => scrollTo(0, 0));
  }
  await page.waitForTimeout(1200);
  const path = join(root, 'docs', 'gallery', `${name}.png`);
  const height = Math.min(2300, await page.evaluate(() => document.documentElement.scrollHeight));
  await page.screenshot({ path, fullPage: true, clip: { x: 0, y: 0, width: 1280, height } });
  console.log(path);
  await page.close();
}
await browser.close();
