// The contexts of the store as the Library lists them: pages by cursor, kept up to date without moving what is pointed at.
import { signal } from '@preact/signals';
import { get, type Context, type ContextList } from './api';

const page = 200;

export type Conditions = Record<string, string | boolean | string[] | undefined>;

export function contextList() {
  const list = signal<Context[]>([]);
  const next = signal<string | undefined>('');
  const failed = signal('');
  const waiting = signal<Context[] | undefined>(undefined); // the first page, while what is there must not move
  const loaded = signal(false);
  let conditions: Conditions = {};
  let abort = new AbortController();

  const ask = (cursor: string, a: AbortController): Promise<ContextList> =>
    get<ContextList>('/contexts', { ...conditions, limit: page, cursor, outline: true }, a.signal);
  const say = (e: unknown, a: AbortController): void => {
    if (!a.signal.aborted) failed.value = e instanceof Error ? e.message : String(e);
  };
  /** Puts a new first page before what was loaded of the others. */
  const put = (first: Context[]): void => {
    const there = new Set(first.map((c) => c.id));
    list.value = [...first, ...list.value.slice(page).filter((c) => !there.has(c.id))];
    waiting.value = undefined;
  };

  return {
    list, next, failed, waiting, loaded,

    async begin(c: Conditions): Promise<void> {
      conditions = c;
      abort.abort();
      const mine = (abort = new AbortController());
      try {
        const got = await ask('', mine);
        list.value = got.contexts;
        next.value = got.next;
        waiting.value = undefined;
        failed.value = '';
        loaded.value = true;
      } catch (e) {
        say(e, mine);
      }
    },

    async more(): Promise<void> {
      const from = next.value;
      if (!from) return;
      next.value = '';
      const mine = abort;
      try {
        const got = await ask(from, mine);
        list.value = [...list.value, ...got.contexts];
        next.value = got.next;
      } catch (e) {
        next.value = from;
        say(e, mine);
      }
    },

    /** Looks at the first page again. With still, rows change in place, and new ones wait. */
    async refresh(still: boolean): Promise<void> {
      const mine = abort;
      try {
        const got = await ask('', mine);
        if (mine.signal.aborted) return;
        if (!still) return put(got.contexts);
        const now = new Map(got.contexts.map((c) => [c.id, c]));
        list.value = list.value.map((c) => now.get(c.id) ?? c);
        waiting.value = got.contexts;
      } catch (e) {
        say(e, mine);
      }
    },

    /** Shows what has waited. */
    settle(): void {
      if (waiting.value) put(waiting.value);
    },
  };
}
