// The keys of the page. A screen says which keys it has while it is open; the list that "?" shows is made from that.
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Dialog } from './dialog';

export interface Key {
  /** As it is pressed: "j", "g l", "Escape"; several with a bar between spaces: "o | Enter". */
  keys: string;
  title: string;
  /** Only in the list: something else hears the key. */
  shown?: boolean;
  run: (e: KeyboardEvent) => void;
}

const stored = 'ctxdir.keys';
const patience = 1000; // ms between the two keys of a sequence

/** Whether single keys do something; a person may switch them off. */
export const single = signal(localStorage.getItem(stored) !== 'off');

export function setSingle(on: boolean): void {
  single.value = on;
  if (on) localStorage.removeItem(stored);
  else localStorage.setItem(stored, 'off');
}

interface Group {
  title: string;
  keys: Key[];
  /** Whether the palette offers them. */
  offered: boolean;
}

const groups = signal<Group[]>([]);
export const helpOpen = signal(false);

/** Has keys while a component is there. Of two that have the same key, the later one counts. */
export function useKeys(title: string, keys: Key[], offered = true): void {
  const group = useRef<Group>({ title, keys, offered });
  group.current.keys = keys;
  useLayoutEffect(() => { // a screen that is seen has its keys
    groups.value = [...groups.value, group.current];
    return () => {
      groups.value = groups.value.filter((g) => g !== group.current);
    };
  }, []);
}

/** What can be done now, for the palette. */
export const actions = (): Key[] => groups.value.filter((g) => g.offered).reverse().flatMap((g) => g.keys);

let begun = '';
let begunAt = 0;

const isField = (e: Element | null): boolean =>
  !!e && (e.matches('input, textarea, select, [contenteditable]') || !!e.closest('dialog'));

function press(e: KeyboardEvent): void {
  if (e.defaultPrevented || e.isComposing) return;
  const modified = e.metaKey || e.ctrlKey;
  const name = (modified ? 'Mod+' : '') + (e.key.length === 1 && modified ? e.key.toLowerCase() : e.key);
  if (e.altKey || (!modified && (!single.value || isField(e.target as Element)))) return;
  const sequence = begun && e.timeStamp - begunAt < patience ? begun + ' ' + name : '';
  begun = '';
  for (const wanted of sequence ? [sequence, name] : [name]) {
    for (const g of [...groups.value].reverse()) {
      const key = g.keys.find((k) => !k.shown && k.keys.split(' | ').includes(wanted));
      if (!key) continue;
      e.preventDefault();
      key.run(e);
      return;
    }
  }
  if (groups.value.some((g) => g.keys.some((k) => k.keys.startsWith(name + ' ') && !k.keys.startsWith(name + ' |')))) {
    begun = name;
    begunAt = e.timeStamp;
  }
}

export function start(): void {
  addEventListener('keydown', press);
}

const apple = /Mac|iP/.test(navigator.platform);
const named: Record<string, string> = { Escape: 'Esc', ArrowDown: '↓', ArrowUp: '↑', ArrowRight: '→', ArrowLeft: '←' };
const spelled = (key: string): string[] => key.replace('Mod+', apple ? '⌘ ' : 'Ctrl ').split(' ').map((k) => named[k] ?? (k.length === 1 && key.includes('Mod') ? k.toUpperCase() : k));

/** Keys as they are printed on a keyboard. */
export function Keys({ of }: { of: string }) {
  return (
    <span class="kbds">
      {of.split(' | ').map((alternative) => <span>{spelled(alternative).map((k) => <kbd>{k}</kbd>)}</span>)}
    </span>
  );
}

export function Help() {
  if (!helpOpen.value) return null;
  return (
    <Dialog title="Keys" wide onClose={() => { helpOpen.value = false; }}>
      <div class="keylist">
        {groups.value.filter((g) => g.keys.length > 0).map((g) => (
          <section>
            <h3>{g.title}</h3>
            <dl>
              {g.keys.map((k) => (
                <div>
                  <dt>{k.title}</dt>
                  <dd><Keys of={k.keys} /></dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p class="t3 s">Settings can switch single keys off.</p>
    </Dialog>
  );
}
