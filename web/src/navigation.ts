// Marks the section in view in the page's navigation.

export function followSections(run: HTMLElement): void {
  const links = [...run.querySelectorAll<HTMLAnchorElement>('nav.sections a')];
  const targets = links.flatMap((link) => {
    const section = document.getElementById(link.hash.slice(1));
    return section ? [{ link, section }] : [];
  });
  const mark = () => {
    // The last section that begins in the upper third of the window.
    const passed = targets.filter(({ section }) => section.getBoundingClientRect().top < innerHeight / 3);
    const current = passed[passed.length - 1] ?? targets[0];
    for (const { link } of targets) {
      if (link === current?.link) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  };
  addEventListener('scroll', mark, { passive: true });
  mark();
}
