import { useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { offline } from './api';
import { Asked } from './dialog';
import { Icon, type IconName } from './icons';
import { Help, helpOpen, Keys, useKeys } from './keys';
import { live, nextTry } from './live';
import { owner, root } from './root';
import { changed, go, link, parts, path, query } from './route';
import { Settings, settingsOpen } from './settings';
import { store } from './store';
import { T, timeOf } from './text';
import { Undo, undo } from './undo';
import * as theme from './theme';

const screens: [string, string, IconName][] = [
  ['', 'Library', 'library'],
  ['search', 'Search', 'search'],
  ['files', 'Files', 'files'],
  ['usage', 'Usage', 'usage'],
  ...(owner ? [] : [['health', 'Health', 'health'] as [string, string, IconName]]), // of a whole store
];

type Screen = ComponentType<{ parts: string[] }>;

/** Screens load when they open. */
function screenOf(all: string[]): () => Promise<Screen> {
  switch (all[0]) {
    case undefined:
      return () => import('./library').then((m) => m.Library);
    case 'c':
      return viewOf(all[2]);
    case 'search':
      return () => import('./search').then((m) => m.Search);
    case 'files':
      return () => import('./files').then((m) => m.Files);
    case 'usage':
      return () => import('./usage').then((m) => m.Usage);
    case 'health':
      return () => import('./health').then((m) => m.Health);
    default:
      return () => import('./nowhere').then((m) => m.Nowhere);
  }
}

/** The views of one context. */
function viewOf(view: string | undefined): () => Promise<Screen> {
  switch (view) {
    case undefined:
      return () => import('./conversation').then((m) => m.Conversation);
    case 'branches':
      return () => import('./branches').then((m) => m.Branches);
    case 'compare':
      return () => import('./compare').then((m) => m.Compare);
    case 'assemble':
      return () => import('./assemble').then((m) => m.Assemble);
    case 'export':
      return () => import('./export').then((m) => m.Export);
    case 'm':
      return () => import('./part').then((m) => m.PartView);
    default:
      return () => import('./nowhere').then((m) => m.Nowhere);
  }
}

/** Begins to load the screen of the address. */
export const preload = (): void => void screenOf(parts())();

/** Opens the search, and takes the letters that are typed before its field is there. */
function searching(): void {
  go('/search');
  const field = () => document.querySelector<HTMLInputElement>('.field input');
  const take = (e: KeyboardEvent) => {
    const f = field();
    if (f && document.activeElement === f) return done();
    if (e.key.length !== 1 || e.metaKey || e.ctrlKey || e.altKey) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    go(changed({ q: (query.value.get('q') ?? '') + e.key }), true);
  };
  const done = () => {
    removeEventListener('keydown', take, true);
    clearTimeout(timer);
  };
  const timer = setTimeout(done, 2000);
  addEventListener('keydown', take, true);
  requestAnimationFrame(() => field()?.focus());
}

type Palette = ComponentType<{ onClose: () => void; begin: string }>;

export function Shell() {
  const all = parts();
  const [screen, setScreen] = useState<{ of: string; show: Screen }>();
  const of = all[0] === 'c' ? 'c ' + (all[2] ?? '') : (all[0] ?? '');
  const palette = useSignal<{ show: Palette; begin: string } | undefined>(undefined);
  const find = (begin: string) => void import('./palette').then((m) => { palette.value = { show: m.Palette, begin }; });
  useKeys('Everywhere', [
    { keys: '/', title: 'Search everywhere', run: searching },
    { keys: 'Mod+k', title: 'Do something, or go somewhere', run: () => find('') },
    { keys: ':', title: 'Go to a turn, position or time', run: () => find(':') },
    { keys: 'g l', title: 'Library', run: () => go('/') },
    { keys: 'g s', title: 'Search', run: () => go('/search') },
    { keys: 'g f', title: 'Files', run: () => go('/files') },
    { keys: 'g u', title: 'Usage', run: () => go('/usage') },
    { keys: 'g h', title: 'Health', run: () => go('/health') },
    { keys: 'u', title: 'Undo', run: () => void undo() },
    { keys: '?', title: 'These keys', run: () => { helpOpen.value = true; } },
  ], false);
  useKeys('This page', [
    { keys: ',', title: 'Settings', run: () => { settingsOpen.value = true; } },
  ]);
  useEffect(() => {
    let current = true;
    void screenOf(all)().then((show) => {
      if (current) setScreen({ of, show });
    });
    return () => {
      current = false;
    };
  }, [of]);
  const Show = screen?.of === of ? screen.show : undefined;
  return (
    <div class="app">
      <a class="skip" href="#main">Skip to the content</a>
      <Side here={all[0] ?? ''} find={() => find('')} />
      <main class="main" id="main" tabIndex={-1}>
        <Connection />
        {owner && <p class="strip" role="note">These are conversations of <b><T s={owner} /></b>, shared with you. You cannot change them. <a class="inl" href="/">Go to yours</a></p>}
        {Show && <Show key={all[0] === 'c' ? all[1] : ''} parts={all} />}
      </main>
      <Help />
      <Settings />
      <Asked />
      <Undo />
      {palette.value && <palette.value.show begin={palette.value.begin} onClose={() => { palette.value = undefined; }} />}
      <nav class="tabbar" aria-label="Screens">
        {screens.map(([name, title, icon]) => (
          <a href={link(name ? [name] : [])} aria-current={name === (all[0] ?? '') ? 'page' : undefined}>
            <Icon name={icon} />
            {title}
          </a>
        ))}
      </nav>
    </div>
  );
}

function Side({ here, find }: { here: string; find: () => void }) {
  const shown = live.value.slice(0, 6);
  return (
    <nav class="side" aria-label="Store">
      <div class="store">
        <span class="logo" aria-hidden="true"><Icon name="branch" /></span>
        <T class="ell strong" s={owner || 'ctxdir'} />
      </div>
      <button class="jump" onClick={find}><Icon name="search" /><span>Jump to…</span><Keys of="Mod+k" /></button>
      <div class="nav">
        {screens.map(([name, title, icon]) => (
          <a href={link(name ? [name] : [])} aria-current={name === here || (here === 'c' && !name) ? 'page' : undefined}>
            <Icon name={icon} />
            <span>{title}</span>
          </a>
        ))}
      </div>
      {shown.length > 0 && (
        <>
          <h2>Live</h2>
          <div class="nav tight">
            {shown.map((l) => (
              <a href={link(['c', l.context])} aria-current={root + path.value === link(['c', l.context]) ? 'page' : undefined}>
                <span class={l.state === 'works' ? 'dot live' : 'dot wait'} title={stateText[l.state]} />
                <T class="ell" s={l.title || 'Untitled'} />
              </a>
            ))}
            {live.value.length > shown.length && <a class="t3" href={link([])}>{live.value.length - shown.length} more</a>}
          </div>
        </>
      )}
      <div class="foot">
        {store.value?.read_only && !offline.value ? <Icon name="lock" /> : <span class={offline.value ? 'dot' : 'dot live'} />}
        <span class="ell">{offline.value ? 'Not connected' : store.value?.read_only ? 'Read-only' : 'Following'}</span>
        <span class="sp" />
        <button class="ghost" onClick={() => { helpOpen.value = true; }} aria-label="Keys">?</button>
        <button class="ghost" onClick={() => { settingsOpen.value = true; }} aria-label="Settings"><Icon name="sliders" /></button>
        <button class="ghost" onClick={theme.toggle} aria-label={theme.dark.value ? 'Light colours' : 'Dark colours'}>
          <Icon name="moon" />
        </button>
      </div>
    </nav>
  );
}

export const stateText = {
  works: 'A record came in the last minute, or a call is running',
  waits: 'Answered, waits for a person',
  silent: 'A call has no result for ten minutes, or failed and nothing came since',
};

/** Says that the page shows what was there before the connection was lost. */
function Connection() {
  const left = useSignal(0);
  useSignalEffect(() => {
    if (!offline.value) return;
    const count = () => {
      left.value = Math.max(0, Math.ceil((nextTry.value - Date.now()) / 1000));
    };
    count();
    const timer = setInterval(count, 1000);
    return () => clearInterval(timer);
  });
  if (!offline.value) return null;
  return (
    <div class="strip" role="status">
      Not connected since {timeOf(new Date(offline.value).toISOString())}. This is what was here then.{' '}
      {left.value > 0 ? `Next try in ${left.value} s` : 'Trying again'}
    </div>
  );
}

/** A link that changes one value of the address. */
export function Switch({ name, value, now, children }: { name: string; value: string; now: string; children: string }) {
  return (
    <a class="opt" href={changed({ [name]: value })} aria-current={now === value ? 'true' : undefined}>
      {children}
    </a>
  );
}
