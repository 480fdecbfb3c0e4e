// The controls above the timeline: search with its count, and what to show.

/** What the controls ask of the timeline. */
export interface Actions {
  /** Searches for a name; an empty one ends the search. */
  find(query: string): void;
  next(by: 1 | -1): void;
  togglePath(): void;
  zoom(factor: number): void;
  showAnalyzed(): void;
}

export class Tools {
  readonly input = document.createElement('input');
  private readonly found = document.createElement('span');
  private readonly path: HTMLButtonElement | null;

  constructor(mount: HTMLElement, actions: Actions, hasPath: boolean) {
    const bar = document.createElement('div');
    bar.className = 'tools';
    bar.setAttribute('role', 'toolbar');
    bar.setAttribute('aria-label', 'Timeline');
    this.input.type = 'search';
    this.input.placeholder = 'Search kernels, copies, operators';
    this.input.setAttribute('aria-label', 'Search the timeline');
    this.found.className = 'found';
    this.found.setAttribute('role', 'status');
    bar.append(this.input, this.found);
    const button = (text: string, label: string, act: () => void) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = text;
      button.setAttribute('aria-label', label);
      button.title = label;
      button.addEventListener('click', act);
      bar.append(button);
      return button;
    };
    button('‹', 'Previous match', () => actions.next(-1));
    button('›', 'Next match', () => actions.next(1));
    button('+', 'Zoom in', () => actions.zoom(0.6));
    button('−', 'Zoom out', () => actions.zoom(1 / 0.6));
    button('Fit', 'Show the analyzed steps', () => actions.showAnalyzed());
    this.path = hasPath ? button('Critical path', 'Show the critical path', () => actions.togglePath()) : null;
    this.showPath(false);
    this.listen(actions);
    mount.append(bar);
  }

  private listen(actions: Actions): void {
    this.input.addEventListener('input', () => actions.find(this.input.value.trim()));
    this.input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') actions.next(event.shiftKey ? -1 : 1);
      else if (event.key === 'Escape') {
        this.input.value = '';
        actions.find('');
      } else return;
      event.preventDefault();
    });
  }

  showFound(text: string): void {
    this.found.textContent = text;
  }

  showPath(isShown: boolean): void {
    this.path?.setAttribute('aria-pressed', String(isShown));
  }
}
