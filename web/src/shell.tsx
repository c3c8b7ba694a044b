import { useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, offline, type Store } from './api';
import { Icon, type IconName } from './icons';
import { live, nextTry } from './live';
import { changed, link, parts, path } from './route';
import { T, timeOf } from './text';
import * as theme from './theme';

const screens: [string, string, IconName][] = [
  ['', 'Library', 'library'],
  ['search', 'Search', 'search'],
  ['files', 'Files', 'files'],
  ['usage', 'Usage', 'usage'],
  ['health', 'Health', 'health'],
];

type Screen = ComponentType<{ parts: string[] }>;

/** Screens load when they open. */
function screenOf(all: string[]): () => Promise<Screen> {
  switch (all[0]) {
    case undefined:
      return () => import('./library').then((m) => m.Library);
    case 'c':
      if (all[2] === 'export') return () => import('./export').then((m) => m.Export);
      return () => import('./conversation').then((m) => m.Conversation);
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

export function Shell() {
  const all = parts();
  const [screen, setScreen] = useState<{ of: string; show: Screen }>();
  const here = all[0] ?? '';
  const of = here === 'c' ? `c/${all[2] ?? ''}` : here; // a context has several screens
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
      <Side here={here} />
      <main class="main" id="main" tabIndex={-1}>
        <Connection />
        {Show && <Show key={all[0] === 'c' ? all[1] : ''} parts={all} />}
      </main>
      <nav class="tabbar" aria-label="Screens">
        {screens.map(([name, title, icon]) => (
          <a href={link(name ? [name] : [])} aria-current={name === here ? 'page' : undefined}>
            <Icon name={icon} />
            {title}
          </a>
        ))}
      </nav>
    </div>
  );
}

function Side({ here }: { here: string }) {
  const store = useSignal<Store | undefined>(undefined);
  useEffect(() => {
    void get<Store>('/store').then((s) => {
      store.value = s;
    }, () => undefined);
  }, []);
  const shown = live.value.slice(0, 6);
  return (
    <nav class="side" aria-label="Store">
      <div class="store">
        <span class="logo" aria-hidden="true"><Icon name="branch" /></span>
        <b class="ell">ctxdir</b>
      </div>
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
              <a href={link(['c', l.context])} aria-current={path.value === link(['c', l.context]) ? 'page' : undefined}>
                <span class={l.state === 'works' ? 'dot live' : 'dot wait'} title={stateText[l.state]} />
                <T class="ell" s={l.title || 'Untitled'} />
              </a>
            ))}
            {live.value.length > shown.length && <a class="t3" href="/">{live.value.length - shown.length} more</a>}
          </div>
        </>
      )}
      <div class="foot">
        <span class={offline.value ? 'dot' : 'dot live'} />
        <span class="ell">{offline.value ? 'Not connected' : store.value?.read_only ? 'Read-only' : 'Following'}</span>
        <span class="sp" />
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
  silent: 'A call has no result for ten minutes',
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
