// Dark or light: as the system has it, unless the reader chose otherwise. The choice is kept in this browser; where
// that is not allowed it holds until the page is closed.

const KEY = 'leasehold.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

/** Applies the choice made before. */
export function begin() {
  apply(remembered());
}

/** Whether the page is dark now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : dark.matches;
}

/** Turns to the other one. */
export function toggle() {
  const next = isDark() ? 'light' : 'dark';
  apply(next);
  remember(next);
}

function apply(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

function remembered() {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === 'dark' || theme === 'light' ? theme : null;
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing still shows what was asked for.
  }
}
