// The lanes of ranks on one clock: which ranks are shown, and which part of the time.

import { at } from './words';

/** The shown part, in microseconds. */
interface Part {
  from: number;
  length: number;
}

/** The least that is shown, in microseconds. */
const LEAST = 100;

export function alignedLanes(): void {
  for (const section of document.querySelectorAll<HTMLElement>('.aligned-lanes')) {
    choose(section);
    zoom(section, Number(section.dataset['length']));
  }
}

function choose(section: HTMLElement): void {
  const rows = [...section.querySelectorAll<HTMLElement>('.rank-lanes')];
  for (const box of section.querySelectorAll<HTMLInputElement>('.choose-ranks input')) {
    const show = () => {
      for (const row of rows) if (row.dataset['rank'] === box.value) row.hidden = !box.checked;
    };
    // A browser may restore what was chosen before a reload.
    show();
    box.addEventListener('change', show);
  }
}

/** Buttons that change the part of the time that all lanes show. */
function zoom(section: HTMLElement, length: number): void {
  const part: Part = { from: 0, length };
  const apply = (from: number, shown: number) => {
    part.length = Math.min(length, Math.max(Math.min(LEAST, length), shown));
    part.from = Math.min(length - part.length, Math.max(0, from));
    for (const lane of section.querySelectorAll('svg.lane')) lane.setAttribute('viewBox', `${part.from} 0 ${part.length} 1`);
    const ticks = [...section.querySelectorAll('.lane-axis span')];
    for (const [number, tick] of ticks.entries()) {
      const step = (1000 * part.length) / (ticks.length - 1);
      tick.textContent = at(1000 * part.from + step * number, step / 10);
    }
  };
  const middle = () => part.from + part.length / 2;
  const buttons: readonly [string, () => void][] = [
    ['zoom in', () => apply(middle() - part.length / 4, part.length / 2)],
    ['zoom out', () => apply(middle() - part.length, part.length * 2)],
    ['earlier', () => apply(part.from - part.length / 2, part.length)],
    ['later', () => apply(part.from + part.length / 2, part.length)],
    ['all', () => apply(0, length)],
  ];
  const tools = document.createElement('div');
  tools.className = 'tools';
  for (const [name, act] of buttons) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = name;
    button.addEventListener('click', act);
    tools.append(button);
  }
  section.querySelector('.choose-ranks')?.after(tools);
}
