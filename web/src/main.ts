// Draws what the page has data for. Words, cards and tables are in the page already.

import 'uplot/dist/uPlot.min.css';
import './style.css';

import { type Picture, readPicture } from './picture';
import { Stills } from './print';
import { Roofline } from './roofline';
import { Steps } from './steps';
import { throughputs } from './throughput';
import { Timeline } from './timeline/timeline';

const stills = new Stills();

async function drawRun(run: HTMLElement): Promise<void> {
  if (run.dataset['drawn']) return;
  run.dataset['drawn'] = 'begun';
  const blocks = [...run.querySelectorAll<HTMLElement>('script.data')];
  const pictures = await Promise.all(blocks.map((block) => readPicture(block.textContent ?? '')));
  // Decoded once; the text need not be held any longer.
  for (const block of blocks) block.remove();
  const mount = (chart: string) => run.querySelector<HTMLElement>(`[data-chart="${chart}"]`);
  const lanes = mount('timeline');
  if (!lanes || !pictures.some(hasLanes)) {
    run.querySelectorAll('.timeline-section').forEach((section) => section.remove());
    run.dataset['drawn'] = 'done';
    return;
  }
  const timeline = new Timeline(lanes, pictures);
  stills.add(lanes, timeline);
  const bus = mount('throughput');
  if (bus) attempt(bus, () => throughputs(bus, timeline).forEach((chart) => stills.add(bus, chart)));
  const [picture] = pictures;
  const roof = mount('roofline');
  if (roof && picture.dots.length > 0) {
    const toDot = (start: number) => {
      timeline.showCopy(start);
      lanes.scrollIntoView({ behavior: 'smooth', block: 'center' });
    };
    attempt(roof, () => stills.add(roof, new Roofline(roof, picture, toDot)));
  }
  const steps = mount('steps');
  if (steps && picture.steps.start.length > 1) {
    attempt(steps, () => stills.add(steps, new Steps(steps, picture, (from, to) => timeline.show({ from, to }))));
  }
  const buttons = [...run.querySelectorAll<HTMLButtonElement>('button.show')];
  timeline.onMark = (finding) => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(Number(button.dataset['show']) === finding));
  };
  for (const button of buttons) {
    button.addEventListener('click', () => {
      timeline.showFinding(Number(button.dataset['show']));
      if (button.getAttribute('aria-pressed') === 'true') lanes.scrollIntoView({ behavior: 'smooth', block: 'center' });
    });
  }
  run.dataset['drawn'] = 'done';
}

function hasLanes(picture: Picture): boolean {
  return picture.groups.length > 0;
}

/** A chart that cannot be drawn is said so, and the others go on. */
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
  text.textContent = `The drawings could not be made (${String(error)}). Words and tables are whole. A browser of 2023 or newer draws them.`;
  run.prepend(text);
  console.error(error);
}

/** Of several runs the one that the address names is shown. */
function show(runs: readonly HTMLElement[]): void {
  const wanted = runs.find((run) => `#${run.id}` === location.hash) ?? runs[0];
  for (const run of runs) run.hidden = run !== wanted;
  for (const link of document.querySelectorAll<HTMLAnchorElement>('nav.runs a')) {
    link.setAttribute('aria-current', String(link.hash === `#${wanted.id}`));
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
