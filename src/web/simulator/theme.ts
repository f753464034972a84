// Light or dark: as the system has it, unless one is chosen. The choice is kept in this browser where it may be; charts hear of a change.

const THEMES = ['auto', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const KEY = 'moonroute-theme';

/** Lets a button change it. */
export function themeButton(button: HTMLButtonElement): void {
  let theme = kept();
  const apply = () => {
    const root = document.documentElement;
    if (theme === 'auto') delete root.dataset['theme'];
    else root.dataset['theme'] = theme;
    button.textContent = `Colours: ${theme}`;
    document.dispatchEvent(new Event('themechange'));
  };
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    keep(theme);
    apply();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);
  apply();
}

function kept(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? 'auto';
  } catch {
    return 'auto';
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A page that may keep nothing asks again next time.
  }
}
