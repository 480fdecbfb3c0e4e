// The tooltip. Names come from traces, so they are set as text, never as HTML.

const element = document.createElement('div');
element.className = 'tooltip';
element.setAttribute('role', 'tooltip');
element.hidden = true;

export function showTooltip(lines: readonly string[], x: number, y: number): void {
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
  const top = y + 18 + offsetHeight > innerHeight ? y - offsetHeight - 10 : y + 18;
  element.style.left = `${Math.max(4, left)}px`;
  element.style.top = `${Math.max(4, top)}px`;
}

export function hideTooltip(): void {
  element.hidden = true;
}
