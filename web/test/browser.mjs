// Helpers for the tests: pages from the real binary, opened in a real browser.

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { chromium } from 'playwright-core';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const binary = process.env.BUSBOUND ?? join(root, 'target', 'debug', 'busbound');
const pages = join(root, 'target', 'pages');
const screenshots = join(root, 'target', 'screenshots');
mkdirSync(pages, { recursive: true });
mkdirSync(screenshots, { recursive: true });

export function fixture(name) {
  return join(root, 'fixtures', name);
}

/** Runs the binary; returns its standard output. */
export function busbound(...args) {
  return execFileSync(binary, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
}

/** Writes a page; returns its path. */
export function pageOf(name, ...args) {
  const path = join(pages, `${name}.html`);
  busbound(...args, '--format', 'html', '-o', path);
  return path;
}

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'] });
}

/** Opens a page and waits until it is drawn; records its warnings, errors and network requests. */
export async function open(browser, path, options = {}) {
  const { wait = true, ...context } = options;
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...context });
  const seen = { errors: [], requests: [] };
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.errors.push(message.text());
  });
  page.on('pageerror', (error) => seen.errors.push(String(error)));
  page.on('request', (request) => seen.requests.push(request.url()));
  const url = pathToFileURL(path).href;
  await page.goto(url);
  if (wait) await page.waitForSelector('article.run[data-drawn="done"]', { timeout: 20_000 });
  return { page, seen, url };
}

export async function screenshot(page, name, options = {}) {
  await page.waitForTimeout(150);
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true, ...options });
}
