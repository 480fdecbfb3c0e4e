// Shows what a word means where it is used: below the text that has the link. Without the script, the link leads to the
// explanation at the end of the page.

const LINKS = 'a[href^="#explain-"]';

export function explainInPlace(): void {
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>(LINKS) : null;
    const explained = link && document.getElementById(link.hash.slice(1));
    if (!link || !(explained instanceof HTMLDetailsElement)) return;
    event.preventDefault();
    toggle(link, explained);
  });
  for (const link of document.querySelectorAll(LINKS)) link.setAttribute('aria-expanded', 'false');
}

/** The text that the explanation goes below. */
function blockOf(link: HTMLElement): HTMLElement {
  return link.closest<HTMLElement>('figure, .wide, li, p, section') ?? link;
}

function toggle(link: HTMLAnchorElement, explained: HTMLDetailsElement): void {
  const block = blockOf(link);
  const next = block.nextElementSibling instanceof HTMLElement ? block.nextElementSibling : null;
  const inside = block.matches('li') ? block.querySelector<HTMLElement>(':scope > .in-place') : null;
  const open = inside ?? (next?.matches('.in-place') ? next : null);
  const isSame = open?.dataset['of'] === link.hash;
  const opener = open && document.querySelector<HTMLElement>(`${LINKS}[aria-expanded="true"]`);
  open?.remove();
  opener?.setAttribute('aria-expanded', 'false');
  if (isSame) return;
  const shown = panel(explained, link);
  // Only list items may be in a list.
  if (block.matches('li')) block.append(shown);
  else block.after(shown);
  link.setAttribute('aria-expanded', 'true');
}

function panel(explained: HTMLDetailsElement, link: HTMLAnchorElement): HTMLElement {
  const panel = document.createElement('div');
  panel.className = 'in-place';
  panel.dataset['of'] = link.hash;
  panel.setAttribute('role', 'note');
  const close = document.createElement('button');
  close.type = 'button';
  close.textContent = 'Close';
  close.addEventListener('click', () => {
    panel.remove();
    link.setAttribute('aria-expanded', 'false');
    link.focus();
  });
  const title = document.createElement('p');
  const name = document.createElement('b');
  name.textContent = explained.querySelector('summary')?.textContent ?? '';
  title.append(name);
  const texts = [...explained.children].filter((child) => child.tagName !== 'SUMMARY').map((child) => child.cloneNode(true));
  panel.append(close, title, ...texts);
  return panel;
}
