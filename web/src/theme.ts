// Light or dark: as the system says, unless a person has chosen.
import { signal } from '@preact/signals';

const key = 'ctxdir.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

export const dark = signal(false);

function apply(): void {
  const chosen = localStorage.getItem(key);
  dark.value = chosen ? chosen === 'dark' : system.matches;
  document.documentElement.dataset['theme'] = dark.value ? 'dark' : 'light';
}

export function toggle(): void {
  localStorage.setItem(key, dark.value ? 'light' : 'dark');
  apply();
}

export function start(): void {
  system.addEventListener('change', apply);
  apply();
}
