// The contexts of the store as the Library lists them: pages by cursor, kept up to date without moving what is pointed at.
import { signal } from '@preact/signals';
import { get, type Context, type ContextList } from './api';

const page = 60;
const grouped = 300; // where each group is to have its newest ones

export type Conditions = Record<string, string | number | boolean | string[] | undefined>;

const day = 86_400_000;

/** The time from which contexts are listed, for a number of days. */
export function since(days: string | null): string | undefined {
  const n = Number(days);
  if (!days || !Number.isFinite(n)) return undefined;
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  return new Date(midnight.getTime() - n * day).toISOString();
}

/** The conditions that the address of the Library names. */
export function conditionsOf(q: URLSearchParams): Conditions {
  const title = q.get('title');
  return {
    ...(q.get('group') === 'project' && { limit: grouped }), sort: q.get('sort') ?? 'updated', tool: q.get('tool') ?? '', model: q.get('model') ?? '',
    title: title ? `*${title.replace(/[*?[\]\\]/g, '?')}*` : '',
    label: [q.get('project') && 'project=' + q.get('project'), q.get('label')].filter((l): l is string => !!l), since: since(q.get('since')),
  };
}

/** The question for the first page. */
export const firstPage = (c: Conditions) => ({ limit: page, ...c, cursor: '', outline: true });

export function contextList() {
  const list = signal<Context[]>([]);
  const next = signal<string | undefined>('');
  const failed = signal('');
  const waiting = signal<Context[] | undefined>(undefined); // the first page, while what is there must not move
  const loaded = signal(false);
  let conditions: Conditions = {};
  let abort = new AbortController();

  const ask = (cursor: string, a: AbortController): Promise<ContextList> =>
    get<ContextList>('/contexts', { ...firstPage(conditions), cursor }, a.signal);
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
      next.value = ''; // that of the list before
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
