// The buttons that copy a fix.

export function copyButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button.copy')) {
    const code = button.parentElement?.querySelector('code');
    if (!code) continue;
    button.addEventListener('click', () => {
      copied(code).then((isCopied) => {
        button.textContent = isCopied ? 'Copied' : 'Press Ctrl+C';
        setTimeout(() => (button.textContent = 'Copy'), 2_000);
      });
    });
  }
}

/** Copies the text; if the browser refuses, selects it. */
async function copied(code: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(code.textContent ?? '');
    return true;
  } catch {
    getSelection()?.selectAllChildren(code);
    return false;
  }
}
