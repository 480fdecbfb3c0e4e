// How large are the pages of long traces, how fast do they open, and how fast do they zoom? Run by
// `cargo xtask bench`; writes docs/results/page.md.

import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';

import { fixture, launch, open, root } from './test/browser.mjs';

const scratch = join(root, 'target', 'bench');
const binary = process.env.BUSBOUND ?? join(root, 'target', 'release', 'busbound');
const WARM = 20;
const FRAMES = 240;

/** Reproducible random numbers between 0 and 1. */
let state = 1;
function random() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

/** A real trace, repeated with new ids each time until it has this many events. */
function longer(name, events) {
  const whole = JSON.parse(gunzipSync(readFileSync(fixture(name))));
  const all = whole.traceEvents.filter((event) => event.ph !== 'M');
  const spans = all.filter((event) => event.ph === 'X');
  const begin = Math.min(...spans.map((event) => event.ts));
  const span = Math.max(...spans.map((event) => event.ts + event.dur)) - begin + 500;
  const repeats = Math.ceil(events / spans.length);
  const path = join(scratch, `${name.replace('.json.gz', '')}-${events}.json`);
  const file = openSync(path, 'w');
  writeSync(file, `${JSON.stringify({ ...whole, traceEvents: [] }).slice(0, -1).replace('"traceEvents":[]', '"x":0')},"traceEvents":[\n`);
  const names = whole.traceEvents.filter((event) => event.ph === 'M').map((event) => JSON.stringify(event));
  writeSync(file, names.join(',\n'));
  for (let repeat = 0; repeat < repeats; repeat++) {
    const moved = all.map((event) => {
      const copy = { ...event, ts: Number((event.ts + repeat * span).toFixed(3)) };
      // Real steps differ by nanoseconds; identical ones would compress too well.
      if (event.dur !== undefined) copy.dur = Number((event.dur * (1 - 0.2 * random())).toFixed(3));
      if (event.args) {
        copy.args = { ...event.args };
        for (const id of ['correlation', 'External id']) {
          if (event.args[id] !== undefined) copy.args[id] = event.args[id] + repeat * 10_000_000;
        }
      }
      if (event.id !== undefined) copy.id = event.id + repeat * 10_000_000;
      return JSON.stringify(copy);
    });
    writeSync(file, `,\n${moved.join(',\n')}`);
  }
  writeSync(file, '\n]}\n');
  closeSync(file);
  return { path, events: repeats * spans.length };
}

/** Median time in seconds until the page is drawn. */
async function opened(browser, page) {
  const times = [];
  for (let i = 0; i < 3; i++) {
    const begin = performance.now();
    const opened = await open(browser, page);
    await opened.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    times.push(performance.now() - begin);
    await opened.page.close();
  }
  return times.sort((a, b) => a - b)[1] / 1e3;
}

/** Frame times while the timeline zooms from the whole trace to microseconds and back. */
async function frames(browser, path) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  // Measures the page's own drawing time per frame.
  await context.addInitScript(() => {
    const ask = window.requestAnimationFrame.bind(window);
    window.drawing = 0;
    window.nextFrame = ask;
    window.requestAnimationFrame = (draw) =>
      ask((now) => {
        const begin = performance.now();
        draw(now);
        window.drawing += performance.now() - begin;
      });
  });
  const page = await context.newPage();
  await page.goto(pathToFileURL(path).href);
  await page.waitForSelector('article.run[data-drawn="done"]');
  const canvas = page.locator('.timeline canvas');
  await canvas.scrollIntoViewIfNeeded();
  await canvas.focus();
  await page.keyboard.press('0');
  await page.waitForTimeout(1000);
  const { drawing, intervals } = await page.evaluate(
    async ({ WARM, FRAMES }) => {
      const canvas = document.querySelector('.timeline canvas');
      const box = canvas.getBoundingClientRect();
      const frame = () => new Promise((done) => window.nextFrame(done));
      const [drawing, intervals] = [[], []];
      let last = await frame();
      for (let i = 0; i < WARM + FRAMES; i++) {
        const deltaY = i % 120 < 80 ? -120 : 240;
        const at = { clientX: box.left + 300 + ((7 * i) % 600), clientY: box.top + 60, bubbles: true, cancelable: true };
        window.drawing = 0;
        canvas.dispatchEvent(new WheelEvent('wheel', { deltaY, ctrlKey: true, ...at }));
        const now = await frame();
        if (i >= WARM) {
          drawing.push(window.drawing);
          intervals.push(now - last);
        }
        last = now;
      }
      return { drawing, intervals };
    },
    { WARM, FRAMES },
  );
  await context.close();
  drawing.sort((a, b) => a - b);
  const p95 = drawing[Math.floor(0.95 * FRAMES)];
  const rate = (1e3 * FRAMES) / intervals.reduce((sum, ms) => sum + ms, 0);
  return { median: drawing[FRAMES >> 1], p95, worst: drawing.at(-1), rate };
}

const browser = await launch();
const rows = [];
for (const [name, wanted] of [
  ['launch_bound.json.gz', 200_000],
  ['launch_bound.json.gz', 2_000_000],
]) {
  const { path, events } = longer(name, wanted);
  const page = path.replace('.json', '.html');
  const begin = performance.now();
  execFileSync(binary, ['diagnose', path, '--format', 'html', '-o', page], { stdio: 'inherit' });
  const writing = (performance.now() - begin) / 1e3;
  const megabytes = statSync(page).size / 1e6;
  const opening = await opened(browser, page);
  rows.push({ name, events, writing, megabytes, opening, ...(await frames(browser, page)) });
  console.log(rows.at(-1));
}
const version = browser.version();
await browser.close();

const date = new Date().toISOString().slice(0, 10);
const line = (r) =>
  `| ${r.events.toLocaleString('en-US')} | ${r.writing.toFixed(1)} s | ${r.megabytes.toFixed(1)} MB | ${r.opening.toFixed(2)} s | ${r.median.toFixed(1)} ms | ${r.p95.toFixed(1)} ms | ${r.worst.toFixed(1)} ms | ${r.rate.toFixed(0)} |`;
writeFileSync(
  join(root, 'docs', 'results', 'page.md'),
  `# Size and speed of pages

Written by \`cargo xtask bench\`. ${cpus()[0].model}, ${cpus().length} cores, no graphics card, headless Chromium ${version},
${date}. Traces: fixtures/launch_bound.json.gz, repeated with new ids each time; each event is randomly up to 20% shorter.

| events | written in | page | opens in | drawing per frame, median | p95 | max | frames/s |
|---:|---:|---:|---:|---:|---:|---:|---:|
${rows.map(line).join('\n')}

*Opens in* is the time from navigation to the second frame after everything is drawn. Frames: the timeline zooms from the whole trace
to microseconds and back, one wheel event per frame, ${FRAMES} frames; the screen shows at most 60 frames/s. Limits: a page of 2 million
events is below 15 MB and opens within 2 s; 60 frames/s with 200,000 events.
`,
);
