// Draws the charts. Text, cards and tables are already in the page.

import './style.css';

import type { Chart } from './chart';
import { UnreadableData } from './columns';
import { copyButtons } from './copy';
import { explainInPlace } from './explain';
import { flipChart } from './flip';
import { alignedLanes } from './lanes';
import { followSections } from './navigation';
import { type Picture, readPicture } from './picture';
import { Stills } from './print';
import { rooflineChart } from './roofline';
import { sortableTables } from './sort';
import { stepsChart } from './steps';
import { themeButton } from './theme';
import { throughputChart } from './throughput';
import { Timeline } from './timeline/timeline';

/** Every chart except the timeline, by the `data-chart` of the element that it draws into. */
const CHARTS: Readonly<Record<string, Chart>> = {
  flip: flipChart,
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
      const drawn = chart({ mount: place, picture: pictures[0], timeline, toTimeline });
      for (const one of drawn) stills.add(place, one);
      if (drawn.length === 0) place.remove();
    });
  }
  showButtons(run, timeline, toTimeline);
  run.dataset['drawn'] = 'done';
}

/** The buttons that mark a finding in the timeline. */
function showButtons(run: HTMLElement, timeline: Timeline, toTimeline: () => void): void {
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
  if (target instanceof HTMLDetailsElement) target.open = true;
  if (target && target !== wanted) target.scrollIntoView();
  drawRun(wanted).catch((error: unknown) => {
    fail(wanted, error);
    wanted.dataset['drawn'] = 'failed';
  });
}

document.documentElement.classList.add('scripted');
const runs = [...document.querySelectorAll<HTMLElement>('article.run')];
if (runs.length > 0) {
  themeButton();
  copyButtons();
  sortableTables();
  explainInPlace();
  alignedLanes();
  for (const run of runs) followSections(run);
  addEventListener('hashchange', () => show(runs));
  show(runs);
}
