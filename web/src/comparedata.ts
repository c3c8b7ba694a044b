// What two branches have after the place where they part, read in pages.
import { signal } from '@preact/signals';
import { get, type Branch, type Message, type Messages, type Part, type Turn, type Turns } from './api';
import { pathOf } from './branchdata';
import { changesOf, type Change } from './diff';

/** A turn of one side, with its messages after the fork. */
export interface Cell {
  turn: Turn;
  messages: Message[];
  cut: number; // messages that are left out
}

const turnsAtOnce = 6;
const messagesAtOnce = 300;
const mostOfTurn = 200;

export interface Totals {
  turns: number;
  added: number;
  removed: number;
  failed: number;
  more: boolean; // there are more turns than were counted
  about: boolean; // the first turn began before the fork, so its lines are not all of this side
}

/** The turns of a branch from a position on. */
export class Side {
  readonly cells = signal<ReadonlyMap<number, Cell>>(new Map());
  readonly done = signal(false);
  readonly totals = signal<Totals | undefined>(undefined);
  readonly path: string;
  first = 0; // the number of its first turn here
  next = 0; // the number of the turn that is read next

  constructor(readonly context: string, readonly branch: Branch, readonly from: number) {
    this.path = pathOf(context, branch.name);
  }

  /** Finds the first turn; false if there is none. */
  async begin(): Promise<boolean> {
    if (this.branch.messages <= this.from) {
      this.done.value = true;
      this.totals.value = { turns: 0, added: 0, removed: 0, failed: 0, more: false, about: false };
      return false;
    }
    const { turns, next } = await get<Turns>(this.path + '/turns', { at: this.from, limit: 500 });
    const own = turns.filter((t) => t.to > this.from);
    const sum: Totals = { turns: own.length, added: 0, removed: 0, failed: 0, more: next !== undefined, about: false };
    for (const t of own) {
      if (t.from < this.from) sum.about ||= t.added + t.removed > 0;
      sum.added += t.added;
      sum.removed += t.removed;
      sum.failed += t.failed;
    }
    this.totals.value = sum;
    this.first = this.next = own[0]?.number ?? 0;
    return own.length > 0;
  }

  /** Reads turns up to this number, at least. */
  async read(to: number): Promise<void> {
    while (!this.done.value && this.next <= to) await this.page();
  }

  private async page(): Promise<void> {
    const got = await get<Turns>(this.path + '/turns', { from: this.next, limit: turnsAtOnce });
    const turns: Turn[] = [];
    let held = 0;
    for (const t of got.turns) {
      const more = Math.min(mostOfTurn, t.to - Math.max(t.from, this.from));
      if (turns.length > 0 && held + more > messagesAtOnce) break;
      turns.push(t);
      held += more;
    }
    const cells = new Map(this.cells.value);
    // Turns that follow each other are one request, unless one of them is long.
    for (let i = 0; i < turns.length; ) {
      const begin = turns[i];
      if (!begin) break;
      const from = Math.max(begin.from, this.from);
      let end = i + 1;
      if (begin.to - from <= mostOfTurn) while ((turns[end]?.to ?? Infinity) - from <= messagesAtOnce) end++;
      const to = Math.min(turns[end - 1]?.to ?? begin.to, from + messagesAtOnce);
      const { messages } = await get<Messages>(this.path + '/parts', { from, to });
      for (const t of turns.slice(i, end)) {
        const own = messages.filter((m) => m.position >= t.from && m.position < t.to);
        const shown = own.slice(0, mostOfTurn);
        cells.set(t.number, { turn: t, messages: shown, cut: t.to - Math.max(t.from, this.from) - shown.length });
      }
      i = end;
    }
    this.cells.value = cells;
    const last = turns.at(-1);
    this.next = (last?.number ?? this.next) + 1;
    if (!last || last.to >= got.length) this.done.value = true;
  }
}

export interface Edit {
  position: number;
  id: string;
  failed: boolean;
  added: number;
  removed: number;
  changes: Change[]; // none if the call is too long to be read here
}

export interface FileOf {
  path: string;
  edits: Edit[];
}

const filesAtOnce = 250; // messages
const pause = 2000; // messages, after which the reader is asked

/** The files that a branch changed from a position on. */
export class Changes {
  readonly files = signal<ReadonlyMap<string, Edit[]>>(new Map());
  readonly at = signal(0); // the position up to which they are read
  readonly failed = signal('');
  readonly busy = signal(false);

  constructor(readonly side: Side) {
    this.at.value = side.from;
  }

  get left(): number {
    return Math.max(0, this.side.branch.messages - this.at.value);
  }

  async read(abort: AbortSignal): Promise<void> {
    if (this.busy.value) return;
    this.busy.value = true;
    const end = Math.min(this.side.branch.messages, this.at.value + pause);
    try {
      while (this.at.value < end && !abort.aborted) {
        const to = Math.min(end, this.at.value + filesAtOnce);
        const { messages } = await get<Messages>(this.side.path + '/parts', { from: this.at.value, to }, abort);
        const files = new Map(this.files.value);
        for (const m of messages) for (const p of m.parts) if (p.kind === 'call' && p.tool === 'edit') add(files, m, p);
        this.files.value = files;
        this.at.value = to;
      }
      this.failed.value = '';
    } catch (e) {
      if (!abort.aborted) this.failed.value = e instanceof Error ? e.message : String(e);
    } finally {
      this.busy.value = false;
    }
  }
}

function add(files: Map<string, Edit[]>, m: Message, p: Part): void {
  const all = changesOf(p.text);
  const byPath = new Map<string, Change[]>();
  for (const c of all) byPath.set(c.path, [...(byPath.get(c.path) ?? []), c]);
  if (byPath.size === 0) byPath.set(p.summary ?? '', []);
  const failed = !!p.results?.some((r) => r.failed);
  for (const [path, changes] of byPath) {
    const [added, removed] = byPath.size === 1 ? [p.added ?? 0, p.removed ?? 0] : linesOf(changes);
    const edit = { position: m.position, id: m.id, failed, added, removed, changes };
    files.set(path, [...(files.get(path) ?? []), edit]);
  }
}

/** Lines that a patch adds and removes; only patches change several files. */
function linesOf(changes: Change[]): [number, number] {
  const lines = changes.flatMap((c) => c.patch ?? []);
  return [lines.filter((l) => l.startsWith('+')).length, lines.filter((l) => l.startsWith('-')).length];
}
