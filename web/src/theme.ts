// Light or dark: as the system says, unless a person has chosen. And whether long lines of code are broken.
import { signal } from '@preact/signals';

export type Scheme = '' | 'light' | 'dark'; // "" is that of the system

const [schemeKey, linesKey] = ['ctxdir.theme', 'ctxdir.lines'];
const system = matchMedia('(prefers-color-scheme: dark)');

const stored = (): Scheme => (['light', 'dark'] as const).find((s) => s === localStorage.getItem(schemeKey)) ?? '';

export const chosen = signal<Scheme>(stored());
export const dark = signal(false);
export const broken = signal(localStorage.getItem(linesKey) === 'broken');

const remember = (key: string, value: string): void => (value ? localStorage.setItem(key, value) : localStorage.removeItem(key));

function apply(): void {
  dark.value = chosen.value ? chosen.value === 'dark' : system.matches;
  document.documentElement.dataset['theme'] = dark.value ? 'dark' : 'light';
  document.documentElement.toggleAttribute('data-broken', broken.value);
}

export function choose(scheme: Scheme): void {
  chosen.value = scheme;
  remember(schemeKey, scheme);
  apply();
}

export function breakLines(on: boolean): void {
  broken.value = on;
  remember(linesKey, on ? 'broken' : '');
  apply();
}

export const toggle = (): void => choose(dark.value ? 'light' : 'dark');

export function start(): void {
  system.addEventListener('change', apply);
  apply();
}
