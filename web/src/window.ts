// The part of a branch that is in the document: three screens above and below what is read, and no more than it takes.
import { signal } from '@preact/signals';
import { get, type Message, type Messages, type Turn, type Turns } from './api';

const step = 80; // messages to load at a time
const held = 400; // messages in the document, where they fill it
const atMost = 2000;
const lookBack = 40; // messages at the end that may still get a result

export interface Window {
  messages: Message[];
  turns: Turn[];
  from: number;
  to: number;
  length: number;
}

export type Place = Record<string, string | number>;

export function messageWindow(path: string) {
  const win = signal<Window | undefined>(undefined);
  const failed = signal('');
  let busy = false;
  let asked = 0;

  const turnsOf = async (from: number, to: number): Promise<Turn[]> => {
    const got = await get<Turns>(path + '/turns', { at: from, limit: 200 });
    return got.turns.filter((t) => t.from < to);
  };
  const say = (e: unknown): void => {
    failed.value = e instanceof Error ? e.message : String(e);
  };

  return {
    win,
    failed,

    /** Shows a place; the window begins with a turn. */
    async show(place: Place): Promise<boolean> {
      const mine = ++asked;
      try {
        const got = await get<Messages>(path + '/parts', place);
        let turns = await turnsOf(got.from, Math.max(got.to, got.from + 1));
        const begin = turns[0]?.from ?? got.from;
        if (begin < got.from && got.from - begin <= 200) {
          const more = await get<Messages>(path + '/parts', { from: begin, to: got.from });
          got.messages = [...more.messages, ...got.messages];
          got.from = begin;
        }
        if (mine !== asked) return false;
        turns = turns.filter((t) => t.to > got.from);
        win.value = { messages: got.messages, turns, from: got.from, to: got.to, length: got.length };
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
        const got = await get<Messages>(path + '/parts', range);
        let messages = up ? [...got.messages, ...w.messages] : [...w.messages, ...got.messages];
        let [from, to] = [Math.min(w.from, got.from), Math.max(w.to, got.to)];
        const bound = full ? held : atMost;
        if (messages.length > bound) {
          messages = up ? messages.slice(0, bound) : messages.slice(-bound);
          if (up) to = (messages[messages.length - 1]?.position ?? to) + 1;
          else from = messages[0]?.position ?? from;
        }
        const turns = await turnsOf(from, to);
        if (mine !== asked) return;
        hold();
        win.value = { messages, turns, from, to, length: got.length };
      } catch (e) {
        say(e);
      } finally {
        busy = false;
      }
    },

    /** Takes in what was appended. Calls near the end may have got their results. */
    async grow(length: number): Promise<void> {
      const w = win.value;
      if (!w) return;
      const mine = asked;
      const open = w.messages.slice(-lookBack).find((m) => m.parts.some((p) => p.kind === 'call' && !p.results?.length));
      const from = Math.max(w.from, Math.min(open?.position ?? w.to, w.to));
      try {
        const got = await get<Messages>(path + '/parts', { from, to: Math.max(length, w.to) });
        const turns = await turnsOf(w.from, got.to);
        if (mine !== asked || win.value !== w) return;
        const messages = [...w.messages.filter((m) => m.position < from), ...got.messages];
        win.value = { messages, turns, from: w.from, to: Math.max(got.to, from), length: got.length };
      } catch (e) {
        say(e);
      }
    },
  };
}

export type MessageWindow = ReturnType<typeof messageWindow>;
