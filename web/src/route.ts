// The address of the page: the path names the screen, the query its state. Every view can be reloaded, bookmarked, and
// opened in a second tab.
import { computed, signal } from '@preact/signals';
import { root } from './root';

const here = signal(location.pathname + location.search);

/** The path, without the root of the page. */
export const path = computed(() => (here.value.split('?')[0] ?? '/').slice(root.length) || '/');
export const query = computed(() => new URLSearchParams(here.value.split('?')[1] ?? ''));

export type Values = Record<string, string | number | undefined>;

/** The address of a screen; names are percent-encoded. */
export function link(parts: string[], values: Values = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(values)) if (v !== undefined && v !== '') q.set(k, String(v));
  const text = q.toString();
  return root + '/' + parts.map(encodeURIComponent).join('/') + (text && '?' + text);
}

/** The present address with other values; an empty one goes. */
export function changed(values: Values): string {
  const q = new URLSearchParams(query.value);
  for (const [k, v] of Object.entries(values)) {
    if (v === undefined || v === '') q.delete(k);
    else q.set(k, String(v));
  }
  const text = q.toString();
  return root + path.value + (text && '?' + text);
}

export function go(target: string, replace = false): void {
  const to = root && !target.startsWith(root + '/') ? root + target : target;
  if (to === here.value) return;
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  here.value = to;
}

export function parts(): string[] {
  return path.value.split('/').filter(Boolean).map((p) => {
    try {
      return decodeURIComponent(p);
    } catch {
      return p;
    }
  });
}

export function start(): void {
  addEventListener('popstate', () => {
    here.value = location.pathname + location.search;
  });
  document.addEventListener('click', (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const a = (e.target as Element | null)?.closest?.('a');
    if (!a || a.target || a.origin !== location.origin || a.hasAttribute('download') || /^\/(v1|docs)/.test(a.pathname)) return;
    if (root ? !a.pathname.startsWith(root + '/') : a.pathname.startsWith('/shared/')) return; // another page
    e.preventDefault();
    go(a.pathname + a.search);
  });
}
