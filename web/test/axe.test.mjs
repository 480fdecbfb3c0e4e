// Accessibility: no page has a serious finding of axe-core, light or dark, wide or narrow.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { fixture, launch, open, pageOf, root } from './browser.mjs';
import { lateRank } from './ranks.mjs';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const pages = {
  diagnose: ['diagnose', fixture('off_block_pageable_c4.json.gz')],
  launch_bound: ['diagnose', fixture('launch_bound.json.gz')],
  loader: ['diagnose', fixture('train_pageable.json.gz')],
  whatif: ['whatif', fixture('off_block_pageable_c4.json.gz')],
  compare: ['compare', fixture('off_block_pageable_c4.json.gz'), fixture('off_layerwise_d2_c4.json.gz')],
  bench: ['bench', '--from', fixture('machines/raw/h200-full-1.json')],
  topology: ['topo', '--from-nccl', fixture('topology/nccl-eight-gpus.xml')],
  fleet: ['diagnose', fixture('ranks')],
  aligned: ['diagnose', ...lateRank(join(root, 'target', 'pages', 'axe_late'))],
  several: ['diagnose', fixture('off_block_pageable_c4.json.gz'), fixture('launch_bound.json.gz')],
};

for (const [name, args] of Object.entries(pages)) {
  test(`${name}: no serious accessibility finding`, async () => {
    const path = pageOf(`axe_${name}`, ...args);
    for (const [colorScheme, width] of [['light', 1280], ['dark', 390]]) {
      const { page } = await open(browser, path, { colorScheme, viewport: { width, height: 900 }, wait: false });
      await page.waitForTimeout(400);
      // axe-core is injected through the debugger, which the page's policy does not restrict.
      const { violations } = await page.evaluate(`${source}; axe.run(document)`);
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      const found = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} (${failureSummary})`).slice(0, 3)}`);
      assert.deepEqual(found, [], `${colorScheme} at ${width} px`);
      await page.close();
    }
  });
}
