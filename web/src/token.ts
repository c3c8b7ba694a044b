// The token of the server. It comes in the fragment of the printed address, which browsers send to nobody, and stays in
// this tab: a cookie would go to every other server of this machine, and localStorage would outlive the tab.
import { signal } from '@preact/signals';

const key = 'ctxdir.token';
const channel = 'ctxdir.token';
const patience = 150; // ms after which the page asks for the link; another tab may answer later

/** The invitation of the address, until it is used; it stays in memory alone. */
export const invitation = signal('');

export function stored(): string {
  return sessionStorage.getItem(key) ?? '';
}

export function keep(token: string): void {
  if (token) sessionStorage.setItem(key, token);
  else sessionStorage.removeItem(key);
}

/** Takes the token out of the fragment, before anything else can see it there. */
export function takeFromAddress(): void {
  const found = /^#token=([A-Za-z0-9._~-]+)$/.exec(location.hash)?.[1];
  if (found) keep(found);
  invitation.value = /^#invite=([A-Za-z0-9_-]{16,256})$/.exec(location.hash)?.[1] ?? '';
  if (location.hash) history.replaceState(history.state, '', location.pathname + location.search);
}

/**
 * Asks the open tabs of this origin for the token, and answers those that ask later. If a tab is too busy to answer soon,
 * the page begins anew with its answer.
 */
export function ask(): Promise<string> {
  const tabs = new BroadcastChannel(channel);
  return new Promise((resolve) => {
    let late = false;
    const done = (token: string) => {
      clearTimeout(timer);
      if (late && token && !stored()) {
        keep(token);
        location.reload();
      }
      late = true;
      resolve(token);
    };
    const timer = setTimeout(() => done(''), patience);
    tabs.onmessage = (e: MessageEvent<unknown>) => {
      const said = e.data as { ask?: boolean; token?: unknown };
      if (said?.ask && stored()) tabs.postMessage({ token: stored() });
      else if (typeof said?.token === 'string') done(said.token);
    };
    if (stored()) done(stored());
    else tabs.postMessage({ ask: true });
  });
}

/** The token out of what a person pastes: the printed address, or the token alone. */
export function pasted(text: string): string {
  return /(?:#token=)?([A-Za-z0-9._~-]{16,})\s*$/.exec(text.trim())?.[1] ?? '';
}
