// The part of a branch that is in the document: three screens above and below what is read, and no more than it takes.
import { signal } from '@preact/signals';
import { get, type Message, type Messages, type Turn } from './api';

const step = 40; // messages to load at a time
const held = 400; // messages in the document, where they fill it
const atMost = 2000;
const most = 480; // messages in an answer
const lookBack = 40; // messages at the end that may still get a result

export interface Window {
  messages: Message[];
  turns: Turn[];
  from: number;
  to: number;
  length: number;
}

/** The turns of a window: of two answers about the same one, the newer counts. */
function joined(old: Turn[], fresh: Turn[], from: number, to: number): Turn[] {
  const all = new Map([...old, ...fresh].map((t) => [t.number, t]));
  return [...all.values()].filter((t) => t.to > from && t.from < to).sort((a, b) => a.number - b.number);
}

export type Place = Record<string, string | number>;

export const atEnd: Place = { last: 40 }; // what is above the first screen comes when that is shown
export const around = (id: string): Place => ({ around: id, before: 20, after: 40 });

/** The place that an address names without a question to the server; none is the end. */
export function namedPlace(q: URLSearchParams): Place | undefined {
  const [m, p, turn, at] = ['m', 'p', 'turn', 'at'].map((name) => q.get(name));
  if (m) return around(m);
  if (p) return { from: Math.max(0, Number(p) - 20), to: Number(p) + 40 };
  return turn || at ? undefined : atEnd;
}

/** Something in view, and how far below the top it stands, in pixels. */
export interface Anchor {
  id: string;
  top: number;
}

/** What was in view when the present address was left. */
export const anchorOf = (): Anchor | undefined => (history.state as { anchor?: Anchor } | null)?.anchor;

/** The question for a place: the window begins with a turn, if that is near. */
export const shown = (place: Place) => ({ ...place, turns: true, whole: true });

export function messageWindow(path: string) {
  const win = signal<Window | undefined>(undefined);
  const failed = signal('');
  let busy = false;
  let asked = 0;

  const say = (e: unknown): void => {
    failed.value = e instanceof Error ? e.message : String(e);
  };

  return {
    win,
    failed,

    /** Shows a place. */
    async show(place: Place): Promise<boolean> {
      const mine = ++asked;
      try {
        const got = await get<Messages>(path + '/parts', shown(place));
        if (mine !== asked) return false;
        win.value = { messages: got.messages, turns: got.turns ?? [], from: got.from, to: got.to, length: got.length };
        failed.value = '';
        return true;
      } catch (e) {
        if (mine === asked) say(e);
        return false;
      }
    },

    /** Loads messages before or behind the window; full says that those at the other end may go. */
    async more(up: boolean, full: boolean, hold: () => void): Promise<void> {
      const w = win.value;
      if (!w || busy || (up ? w.from === 0 : w.to >= w.length)) return;
      busy = true;
      const mine = asked;
      try {
        const range = up ? { from: Math.max(0, w.from - step), to: w.from } : { from: w.to, to: Math.min(w.to + step, w.length) };
        const got = await get<Messages>(path + '/parts', { ...range, turns: true });
        const now = win.value; // messages may have come in at its other end
        if (mine !== asked || !now || (up ? now.from !== w.from : now.to !== w.to)) return;
        let messages = up ? [...got.messages, ...now.messages] : [...now.messages, ...got.messages];
        let [from, to] = [Math.min(now.from, got.from), Math.max(now.to, got.to)];
        const bound = full ? held : atMost;
        if (messages.length > bound) {
          messages = up ? messages.slice(0, bound) : messages.slice(-bound);
          if (up) to = (messages[messages.length - 1]?.position ?? to) + 1;
          else from = messages[0]?.position ?? from;
        }
        hold();
        win.value = { messages, turns: joined(now.turns, got.turns ?? [], from, to), from, to, length: got.length };
      } catch (e) {
        say(e);
      } finally {
        busy = false;
      }
    },

    /** Takes in what was appended, also since it was told of. Calls near the end may have got their results. */
    async grow(): Promise<void> {
      const w = win.value;
      if (!w) return;
      const mine = asked;
      const open = w.messages.slice(-lookBack).find((m) => m.parts.some((p) => p.kind === 'call' && !p.results?.length));
      const from = Math.max(w.from, Math.min(open?.position ?? w.to, w.to));
      try {
        const got = await get<Messages>(path + '/parts', { from, to: from + most, turns: true });
        if (mine !== asked || win.value !== w) return;
        const messages = [...w.messages.filter((m) => m.position < from), ...got.messages];
        const to = Math.max(got.to, from);
        win.value = { messages, turns: joined(w.turns, got.turns ?? [], w.from, to), from: w.from, to, length: got.length };
      } catch (e) {
        say(e);
      }
    },
  };
}

export type MessageWindow = ReturnType<typeof messageWindow>;
