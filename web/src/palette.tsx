// One field that finds what can be done, and where one can go.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, type Branch, type Context, type ContextList, segment } from './api';
import { Dialog } from './dialog';
import { know, known } from './filters';
import { Badge, Icon } from './icons';
import { actions, Keys } from './keys';
import { base } from './library';
import { changed, go, link, parts } from './route';
import { T } from './text';

interface Item {
  group: string;
  key: string;
  text: string;
  note?: string;
  keys?: string;
  icon?: string;
  tool?: string | undefined;
  run: () => void;
}

const most = 8; // of a group
const pause = 80; // ms without a key, before it asks

const used = new Map<string, number>(); // how often in this tab

/** How well a text has the words: as its beginning, as the beginning of a word, anywhere, or not. */
function rank(text: string, words: string): number {
  const t = text.toLowerCase();
  const w = words.toLowerCase();
  if (!w) return 1;
  if (t.startsWith(w)) return 4;
  if (t.includes(' ' + w)) return 3;
  return w.split(/\s+/).every((part) => t.includes(part)) ? 2 : 0;
}

export function Palette({ onClose, begin }: { onClose: () => void; begin: string }) {
  const words = useSignal(begin);
  const at = useSignal(0);
  const contexts = useSignal<Context[]>([]);
  const branches = useSignal<Branch[]>([]);
  const list = useRef<HTMLDivElement>(null);
  const here = parts();
  const open = here[0] === 'c' ? (here[1] ?? '') : '';
  useEffect(() => {
    if (open) void get<{ branches: Branch[] }>(`/contexts/${segment(open)}/branches`).then((b) => { branches.value = b.branches; }, () => undefined);
  }, [open]);
  useEffect(know, []);
  useEffect(() => {
    const abort = new AbortController();
    const w = words.value.trim();
    const timer = setTimeout(() => {
      if (w.startsWith(':')) return;
      void get<ContextList>('/contexts', { limit: most, title: w && pattern(w) }, abort.signal).then((got) => { contexts.value = got.contexts; }, () => undefined);
    }, pause);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [words.value]);

  const items = itemsOf(words.value.trim(), contexts.value, branches.value, open);
  const chosen = Math.min(at.value, items.length - 1);
  const run = (item: Item | undefined) => {
    if (!item) return;
    used.set(item.key, (used.get(item.key) ?? 0) + 1);
    onClose();
    item.run();
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by) at.value = (chosen + by + items.length) % Math.max(1, items.length);
    else if (e.key === 'Enter') run(items[chosen]);
    else return;
    e.preventDefault();
  };
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  return (
    <Dialog title="Palette" bare onClose={onClose}>
      <label class="find">
        <Icon name="search" />
        <span class="vh">Do something, or go somewhere</span>
        <input value={words.value} autofocus spellcheck={false} autocomplete="off" placeholder="Do something, or go somewhere" role="combobox" aria-expanded="true"
          aria-controls="found" aria-activedescendant={items[chosen] ? 'found-' + chosen : undefined} onKeyDown={onKeyDown}
          onInput={(e) => { words.value = e.currentTarget.value; at.value = 0; }} />
      </label>
      <div class="found" ref={list} id="found" role="listbox" aria-label="Found">
        {items.map((item, i) => (
          <>
            {items[i - 1]?.group !== item.group && <h3 role="presentation">{item.group}</h3>}
            <button key={item.key} id={'found-' + i} role="option" aria-selected={i === chosen} tabIndex={-1} onClick={() => run(item)}>
              {item.icon ? <Icon name={item.icon} /> : <Badge tool={item.tool} />}
              <T class="ell" s={item.text} />
              {item.note && <T class="t3 s ell" s={item.note} />}
              {item.keys && <span class="t3"><Keys of={item.keys} /></span>}
            </button>
          </>
        ))}
        {items.length === 0 && <p class="t3 pad">Write a turn (:37), a position (:#1188) or a time (:14:02)</p>}
      </div>
    </Dialog>
  );
}

/** A pattern for titles that have these words. */
const pattern = (words: string): string => '*' + words.replace(/[*?[\]\\]/g, '?').replace(/\s+/g, '*') + '*';

function itemsOf(words: string, contexts: Context[], branches: Branch[], open: string): Item[] {
  if (words.startsWith(':')) return open ? placesOf(words.slice(1), open) : [];
  const best = (items: Item[]): Item[] => items
    .map((item) => ({ item, score: rank(item.text, words) * 10 + Math.min(9, used.get(item.key) ?? 0), no: rank(item.text, words) === 0 }))
    .filter((x) => !x.no).sort((a, b) => b.score - a.score).slice(0, most).map((x) => x.item);
  const screens: [string, string, string][] = [['', 'Library', 'library'], ['search', 'Search', 'search'], ['files', 'Files', 'files'], ['usage', 'Usage', 'usage'], ['health', 'Health', 'health']];
  const projects = [...new Set(known.value.map((c) => c.labels?.['project'] ?? '').filter(Boolean))];
  const places: Item[] = [
    ...screens.map(([name, text, icon]): Item => ({ group: 'Go to', key: 'screen ' + name, text, icon, run: () => go(link(name ? [name] : [])) })),
    ...branches.map((b): Item => ({ group: 'Go to', key: 'branch ' + b.name, text: b.name, note: 'branch', icon: 'branch', run: () => go(link(['c', open], { b: b.name })) })),
    ...(words ? projects : []).map((p): Item => ({ group: 'Go to', key: 'project ' + p, text: base(p), note: 'project', icon: 'folder', run: () => go(link([], { project: p })) })),
    ...contexts.map((c): Item => ({ group: 'Go to', key: 'context ' + c.id, text: c.title || 'Untitled', note: base(c.labels?.['project']), tool: c.tool, run: () => go(link(['c', c.id])) })),
  ];
  return [
    ...best(actions().map((k): Item => ({ group: 'Do', key: 'do ' + k.title, text: k.title, keys: k.keys, icon: 'chevron', run: () => k.run(new KeyboardEvent('keydown')) }))),
    ...best(places),
    ...(words ? [{ group: 'Search', key: 'search', text: `Search for “${words}”`, icon: 'search', run: () => go(link(['search'], { q: words })) }] : []),
  ];
}

/** A turn, a position or a time of the open conversation. */
function placesOf(text: string, open: string): Item[] {
  const b = new URLSearchParams(location.search).get('b') ?? undefined;
  const item = (what: string, values: Record<string, string>): Item =>
    ({ group: 'Go to', key: what, text: what, icon: 'list', run: () => go(parts()[2] ? link(['c', open], { b, ...values }) : changed({ m: '', p: '', turn: '', at: '', ...values })) });
  if (/^#\d+$/.test(text)) return [item(`Message ${text}`, { p: text.slice(1) })];
  if (/^\d+$/.test(text)) return [item(`Turn ${text}`, { turn: text }), item(`Message #${text}`, { p: text })];
  const t = /^(\d{1,2}):(\d{2})$/.exec(text);
  return t && Number(t[1]) < 24 && Number(t[2]) < 60 ? [item(`The time ${text}`, { at: text })] : [];
}
