// Draws the charts. Text, cards and tables are already in the page.

import 'uplot/dist/uPlot.min.css';
import './style.css';

import type { Chart } from './chart';
import { UnreadableData } from './columns';
import { type Picture, readPicture } from './picture';
import { Stills } from './print';
import { rooflineChart } from './roofline';
import { stepsChart } from './steps';
import { throughputChart } from './throughput';
import { Timeline } from './timeline/timeline';

/** Every chart except the timeline, by the `data-chart` of the element that it draws into. */
const CHARTS: Readonly<Record<string, Chart>> = {
  throughput: throughputChart,
  roofline: rooflineChart,
  steps: stepsChart,
};

const stills = new Stills();

async function drawRun(run: HTMLElement): Promise<void> {
  if (run.dataset['drawn']) return;
  run.dataset['drawn'] = 'begun';
  const blocks = [...run.querySelectorAll<HTMLElement>('script.data')];
  const pictures = await Promise.all(blocks.map((block) => readPicture(block.textContent ?? '')));
  // Frees the encoded text.
  for (const block of blocks) block.remove();
  const mount = (chart: string) => run.querySelector<HTMLElement>(`[data-chart="${chart}"]`);
  const lanes = mount('timeline');
  if (!lanes || !pictures.some(hasLanes)) {
    for (const section of run.querySelectorAll('.timeline-section')) section.remove();
    run.dataset['drawn'] = 'done';
    return;
  }
  const timeline = new Timeline(lanes, pictures);
  stills.add(lanes, timeline);
  const toTimeline = () => lanes.scrollIntoView({ behavior: 'smooth', block: 'center' });
  for (const [name, chart] of Object.entries(CHARTS)) {
    const place = mount(name);
    if (!place) continue;
    attempt(place, () => {
      for (const drawn of chart({ mount: place, picture: pictures[0], timeline, toTimeline })) stills.add(place, drawn);
    });
  }
  const buttons = [...run.querySelectorAll<HTMLButtonElement>('button.show')];
  timeline.onMark = (finding) => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(Number(button.dataset['show']) === finding));
  };
  for (const button of buttons) {
    button.addEventListener('click', () => {
      timeline.showFinding(Number(button.dataset['show']));
      if (button.getAttribute('aria-pressed') === 'true') toTimeline();
    });
  }
  run.dataset['drawn'] = 'done';
}

function hasLanes(picture: Picture): boolean {
  return picture.groups.length > 0;
}

/** If one chart fails, shows an error and still draws the others. */
function attempt(mount: HTMLElement, draw: () => void): void {
  try {
    draw();
  } catch (error) {
    fail(mount, error);
  }
}

function fail(run: HTMLElement, error: unknown): void {
  const text = document.createElement('p');
  text.className = 'failure';
  text.textContent =
    error instanceof UnreadableData
      ? `The charts could not be drawn. ${error.message} Text and tables are complete.`
      : `The charts could not be drawn (${String(error)}). Text and tables are complete. The charts need a browser from 2023 or newer.`;
  run.prepend(text);
  console.error(error);
}

/** Shows the run in the URL's hash, or the one that has its target, or the first. */
function show(runs: readonly HTMLElement[]): void {
  const target = document.getElementById(location.hash.slice(1));
  const wanted = runs.find((run) => run.contains(target)) ?? runs[0];
  for (const run of runs) run.hidden = run !== wanted;
  for (const link of document.querySelectorAll<HTMLAnchorElement>('nav.runs a')) {
    link.setAttribute('aria-current', String(link.hash === `#${wanted.id}`));
  }
  // The explanation that a link leads to.
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
  drawRun(wanted).catch((error: unknown) => {
    fail(wanted, error);
    wanted.dataset['drawn'] = 'failed';
  });
}

function themeButton(): void {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'theme';
  const root = document.documentElement;
  const isDark = () => (root.dataset['theme'] ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const label = () => (button.textContent = isDark() ? 'Light' : 'Dark');
  button.addEventListener('click', () => {
    root.dataset['theme'] = isDark() ? 'light' : 'dark';
    label();
    document.dispatchEvent(new Event('busbound-theme'));
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', label);
  label();
  document.body.prepend(button);
}

document.documentElement.classList.add('scripted');
const runs = [...document.querySelectorAll<HTMLElement>('article.run')];
if (runs.length > 0) {
  themeButton();
  addEventListener('hashchange', () => show(runs));
  show(runs);
}
