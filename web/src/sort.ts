// Tables that are sorted by a click on a title.

export function sortableTables(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>('table.sortable')) {
    const titles = [...table.querySelectorAll<HTMLElement>('thead th')];
    titles.forEach((title, column) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = title.textContent;
      title.replaceChildren(button);
      button.addEventListener('click', () => {
        const isDown = title.getAttribute('aria-sort') !== 'descending';
        for (const other of titles) other.removeAttribute('aria-sort');
        title.setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
        sort(table, column, isDown);
      });
    });
  }
}

/** Cells with a value are compared as numbers, others as text. */
function sort(table: HTMLTableElement, column: number, isDown: boolean): void {
  const body = table.tBodies[0];
  if (!body) return;
  const cell = (row: HTMLTableRowElement) => row.cells[column];
  const compare = (a: HTMLTableRowElement, b: HTMLTableRowElement) => {
    const [x, y] = [cell(a)?.dataset['value'], cell(b)?.dataset['value']];
    if (x !== undefined && y !== undefined) return Number(x) - Number(y);
    return (cell(a)?.textContent ?? '').localeCompare(cell(b)?.textContent ?? '', 'en', { numeric: true });
  };
  body.append(...[...body.rows].sort((a, b) => (isDown ? -1 : 1) * compare(a, b)));
}
