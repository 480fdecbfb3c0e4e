// Light or dark: as the system says, until the reader chooses. The choice is remembered where the browser allows it.

const KEY = 'busbound-theme';

type Theme = 'light' | 'dark';

function remembered(): Theme | null {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === 'light' || theme === 'dark' ? theme : null;
  } catch {
    // Some browsers have no storage for files.
    return null;
  }
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Then the choice lasts until the page is closed.
  }
}

export function themeButton(): void {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const before = remembered();
  if (before) root.dataset['theme'] = before;
  const isDark = () => (root.dataset['theme'] ?? (system.matches ? 'dark' : 'light')) === 'dark';
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'theme';
  const label = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', isDark() ? 'Switch to light colors' : 'Switch to dark colors');
  };
  button.addEventListener('click', () => {
    const theme = isDark() ? 'light' : 'dark';
    root.dataset['theme'] = theme;
    remember(theme);
    label();
    document.dispatchEvent(new Event('busbound-theme'));
  });
  system.addEventListener('change', label);
  label();
  document.body.prepend(button);
}
