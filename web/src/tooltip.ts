// The tooltip. Names come from traces, so they are set as text, never as HTML.

const element = document.createElement('div');
element.className = 'tooltip';
element.setAttribute('role', 'tooltip');
element.hidden = true;

/** What the tooltip must not cover, in pixels from the top of the window. */
export interface Band {
  readonly top: number;
  readonly bottom: number;
}

/** Shows lines of text next to a point, below or above the band. */
export function showTooltip(lines: readonly string[], x: number, { top, bottom }: Band): void {
  if (!element.isConnected) document.body.append(element);
  element.replaceChildren(
    ...lines.map((line, i) => {
      const part = document.createElement(i === 0 ? 'b' : 'span');
      part.textContent = line;
      return part;
    }),
  );
  element.hidden = false;
  const { offsetWidth, offsetHeight } = element;
  const left = Math.min(x + 14, innerWidth - offsetWidth - 8);
  const fitsBelow = bottom + 6 + offsetHeight <= innerHeight;
  element.style.left = `${Math.max(4, left)}px`;
  element.style.top = `${fitsBelow ? bottom + 6 : Math.max(4, top - offsetHeight - 6)}px`;
}

/** A band around a point. */
export function around(y: number): Band {
  return { top: y - 6, bottom: y + 12 };
}

export function hideTooltip(): void {
  element.hidden = true;
}
