// What the screen of the branches asks the server: the branches with the trash, and a few facts of those in view.
import { signal } from '@preact/signals';
import { get, segment, type Branch, type BranchMap, type Messages, type Turns } from './api';
import { forest, type Forest, type Node, type Removed } from './tree';

export const pathOf = (context: string, branch: string): string => `/contexts/${segment(context)}/branches/${segment(branch)}`;

interface Trashed {
  item?: string;
  kind?: string;
  name?: string;
  why?: string;
  first?: number;
  end?: number;
  from?: string;
  shared?: number;
  removed_at?: string;
  expires_at?: string;
}

/** The lines in the trash of a context. */
async function removedOf(context: string): Promise<Removed[]> {
  const { items } = await get<{ items: Trashed[] }>('/trash', { context });
  return items.flatMap((t) => (t.kind !== 'line' || !t.item ? [] : [{
    item: t.item, name: t.name ?? '', rewound: t.why === 'rewound', first: t.first ?? 0, end: t.end ?? 0,
    from: t.from ?? '', shared: t.shared ?? 0, at: t.removed_at ?? '', expires: t.expires_at ?? '',
  }]));
}

export async function load(context: string): Promise<{ branches: Branch[]; removed: Removed[]; all: Forest }> {
  const [{ branches }, removed] = await Promise.all([
    get<{ branches: Branch[] }>(`/contexts/${segment(context)}/branches`), removedOf(context).catch(() => []),
  ]);
  return { branches, removed, all: forest(branches, removed) };
}

export interface Detail {
  of: string; // the state of the branch that it describes
  prompt: string; // the first after the fork
  answer: string;
  turn: number; // in which the branch leaves its parent
  turns: number;
  began?: string;
  last?: string;
  breaks: number[];
  sum?: { turns: number; added: number; removed: number; failed: number }; // of its own turns
}

export const details = signal<ReadonlyMap<string, Detail>>(new Map());

const asked = new Map<string, string>();
const queue: (() => Promise<void>)[] = [];
let running = 0;
const atOnce = 4;

/** Asks for the facts of a branch, unless they are known. */
export function want(context: string, n: Node): void {
  if (!n.branch) return;
  const key = detailKey(context, n);
  const of = `${n.from} ${n.branch.messages}`;
  if (asked.get(key) === of) return;
  asked.set(key, of);
  queue.push(async () => {
    if (asked.get(key) !== of) return;
    try {
      const d = await detailOf(context, n, of);
      details.value = new Map(details.value).set(key, d);
    } catch {
      asked.delete(key);
    }
  });
  void run();
}

export const detailKey = (context: string, n: Node): string => context + ' ' + n.name;

/** Forgets the questions that nobody waits for any more. */
export function forget(): void {
  queue.length = 0;
  for (const [key, of] of asked) if (details.value.get(key)?.of !== of) asked.delete(key);
}

async function run(): Promise<void> {
  if (running >= atOnce) return;
  running++;
  // The newest question first: it is what is in view.
  for (let next = queue.pop(); next; next = queue.pop()) await next();
  running--;
}

const mostTurns = 500;

async function detailOf(context: string, n: Node, of: string): Promise<Detail> {
  const path = pathOf(context, n.name);
  const whole = n.own <= mostTurns;
  const [own, end] = await Promise.all([
    n.own > 0 ? get<Turns>(path + '/turns', { at: n.from, limit: whole ? mostTurns : 3 }) : undefined,
    n.own > 0 && whole ? undefined : get<Turns>(path + '/turns', { limit: 1 }),
  ]);
  const list = own?.turns ?? [];
  const first = list[0];
  const inside = first !== undefined && first.from < n.from; // the fork is within a turn
  const begun = inside ? list.slice(1) : list;
  const last = (end?.turns ?? list).at(-1);
  const wanted = whole ? list.some((t) => t.breaks > 0) : true;
  const breaks = wanted ? (await get<BranchMap>(path + '/map', { stretches: 1 })).breaks_at.filter((at) => at >= n.from) : [];
  // A prompt right after the fork may belong to a turn that began before it.
  const early = inside && first.prompts > 1 ? await promptAt(path, n.from, Math.min(first.to, n.from + 8)) : '';
  const out: Detail = {
    of, prompt: early || begun.find((t) => t.number > 0)?.prompt || '', answer: begun[0]?.answer ?? first?.answer ?? last?.answer ?? '',
    turn: first ? Math.max(0, inside ? first.number : first.number - 1) : (last?.number ?? 0), turns: (own ?? end)?.count ?? 0, breaks,
  };
  const began = begun[0]?.at ?? first?.until;
  if (n.own > 0 && began) out.began = began;
  if (last?.until) out.last = last.until;
  if (whole && own && own.next === undefined) {
    const sum = { turns: begun.length, added: 0, removed: 0, failed: 0 };
    for (const t of begun) {
      sum.added += t.added;
      sum.removed += t.removed;
      sum.failed += t.failed;
    }
    out.sum = sum;
  }
  return out;
}

async function promptAt(path: string, from: number, to: number): Promise<string> {
  const { messages } = await get<Messages>(path + '/parts', { from, to });
  const parts = messages.filter((m) => m.voice === 'user' && !m.bookkeeping).flatMap((m) => m.parts);
  const said = parts.find((p) => p.kind === 'text' && !p.inserted);
  return (said?.said ?? said?.text ?? '').slice(0, 300);
}
