// What goes on in the store: one WebSocket a tab, closed while the tab is hidden for a minute.
import { signal } from '@preact/signals';
import { get, locked, offline, type Live } from './api';
import { root } from './root';
import { stored } from './token';

export interface StoreEvent {
  record: string;
  event?: string;
  context?: string;
  id?: string;
  seq?: number;
  branch?: string;
  position?: number;
}

export const live = signal<Live[]>([]);
/** Changes with each commit of the store, at most ten times a second. */
export const changes = signal(0);
/** When the page last looked at the clock: ages on the page are as of then. */
export const now = signal(Date.now());

const listeners = new Set<(e: StoreEvent) => void>();
export function listen(f: (e: StoreEvent) => void): () => void {
  listeners.add(f);
  return () => listeners.delete(f);
}

const waits = [1, 2, 4, 8, 15]; // seconds between attempts
export const nextTry = signal(0);

let socket: WebSocket | undefined;
let attempt = 0;
let lost = false; // was there a connection before?
let timer = 0;
let hideTimer = 0;
let refreshing = 0;

export async function refresh(): Promise<void> {
  try {
    live.value = (await get<{ contexts: Live[] }>('/live')).contexts;
    now.value = Date.now();
  } catch {
    // The next event, or the next connection, asks again.
  }
}

function soon(): void {
  if (refreshing) return;
  refreshing = window.setTimeout(() => {
    refreshing = 0;
    changes.value++;
    void refresh();
  }, 100);
}

export function connect(): void {
  clearTimeout(timer);
  if (socket || !stored() || locked.value || document.hidden) return;
  const url = new URL(root + '/v1/events', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  const s = new WebSocket(url, ['ctxdir.v1', 'ctxdir.token.' + stored()]);
  socket = s;
  s.onopen = () => {
    attempt = 0;
    offline.value = 0;
  };
  s.onmessage = (e: MessageEvent<string>) => {
    const event = JSON.parse(e.data) as StoreEvent;
    if (event.record === 'heartbeat') return;
    for (const f of listeners) f(event);
    // From here on nothing is missed; what came before, since a screen asked or a connection was lost, is asked for again.
    if (event.record === 'ready' && !lost) void refresh();
    else soon();
    lost = false;
  };
  s.onclose = () => {
    if (socket !== s) return;
    socket = undefined;
    lost = true;
    if (document.hidden || locked.value) return;
    if (!offline.value) offline.value = Date.now();
    const wait = waits[Math.min(attempt++, waits.length - 1)] ?? 15;
    nextTry.value = Date.now() + wait * 1000;
    timer = window.setTimeout(connect, wait * 1000);
    void refresh(); // a socket does not say that the server wants another token
  };
}

let started = false;

export function start(): void {
  if (started) return connect();
  started = true;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hideTimer);
    if (document.hidden) {
      hideTimer = window.setTimeout(() => {
        const s = socket;
        socket = undefined;
        lost = true;
        s?.close();
      }, 60_000);
    } else if (socket) {
      void refresh();
    } else {
      connect();
    }
  });
  connect();
}
