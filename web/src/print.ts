// Prints the charts of the screen as SVG, so that they stay sharp.

import type { Still } from './chart';

const WIDTH = 1000;

export class Stills {
  private readonly all: { mount: HTMLElement; chart: Still }[] = [];
  private drawn: SVGSVGElement[] = [];

  constructor() {
    addEventListener('beforeprint', () => this.draw());
    addEventListener('afterprint', () => this.clear());
  }

  add(mount: HTMLElement, chart: Still): void {
    this.all.push({ mount, chart });
  }

  draw(): void {
    this.clear();
    for (const { mount, chart } of this.all) {
      const still = chart.still(WIDTH);
      mount.append(still);
      this.drawn.push(still);
    }
  }

  private clear(): void {
    for (const still of this.drawn) still.remove();
    this.drawn = [];
  }
}
