// The column in which a conversation is read. It holds a window of the branch, scrolls natively inside of it, and never
// moves what is read.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { get, Problem, segment, type Branch, type Context, type Message, type Turn, type UsageRow } from './api';
import { markWords } from './found';
import { Icon } from './icons';
import { useKeys } from './keys';
import { listen, live } from './live';
import { changed, go, query } from './route';
import { counted, T } from './text';
import { sidesOn } from './tree';
import { placed, TurnView, type Level } from './turn';
import { anchorOf, around, atEnd, messageWindow, namedPlace, type Anchor, type Place, type Window } from './window';

const near = 48; // pixels from the end, in which new messages are followed
const quiet = 15_000; // ms between two announcements
const tooFar = 400; // messages that came at once, and are not shown before the end
const paint = 100; // ms between two looks at what was appended

/** What is in view, in positions, and the number of the turn in which it begins; −1 while that is not known. */
export interface Reading {
  from: number;
  to: number;
  turn: number;
}

interface Props {
  c: Context;
  branch: string;
  branches: Branch[];
  level: Level;
  reading: Signal<Reading>;
  length: Signal<number>;
  usage: Map<string, UsageRow>;
  fork: (t: Turn) => void;
}

async function placeOf(path: string, q: URLSearchParams): Promise<Place | undefined> {
  const named = namedPlace(q);
  if (named) return named;
  const [turn, at] = ['turn', 'at'].map((name) => q.get(name));
  if (turn) {
    const found = await get<{ turns: Turn[] }>(path + '/turns', { from: turn, limit: 1 });
    const first = found.turns[0];
    if (first) go(changed({ turn: '', p: first.id ? '' : first.from, m: first.id }), true);
    return undefined;
  }
  if (at) {
    const last = await get<{ turns: Turn[] }>(path + '/turns', { limit: 1 });
    const day = new Date(last.turns[0]?.at ?? Date.now());
    const [h, min] = at.split(':').map(Number);
    day.setHours(h ?? 0, min ?? 0, 0, 0);
    const found = await get<{ from: number }>(path + '/parts', { at: day.toISOString(), after: 1 });
    go(changed({ at: '', p: found.from, m: '' }), true);
  }
  return undefined;
}

export function Talk({ c, branch, branches, level, reading, length, usage, fork }: Props) {
  const path = `/contexts/${segment(c.id)}/branches/${segment(branch)}`;
  const list = useMemo(() => messageWindow(path), [path]);
  const missed = useSignal(0);
  const said = useSignal('');
  const saidAt = useRef(0);
  const following = useRef(false);
  const scroll = useRef<HTMLDivElement>(null);
  const anchor = useRef<Anchor | undefined>(undefined);
  const q = query.value;
  const [m, p] = [q.get('m'), q.get('p')];
  const w = list.win.value;
  const drawn = useRef<Shown[]>([]);
  const sides = useMemo(() => sidesOn(branches, branch), [branches]);
  const shownTurns = useMemo(() => (drawn.current = w ? turnsIn(w, drawn.current) : []), [w]);

  const top = () => scroll.current?.getBoundingClientRect().top ?? 0;
  const element = (id: string) => scroll.current?.querySelector<HTMLElement>(placed(id));
  /** Where what is read stands. */
  const here = (): Anchor | undefined => {
    const edge = top();
    for (const el of scroll.current?.querySelectorAll<HTMLElement>('.step, [data-id]') ?? []) {
      const r = el.getBoundingClientRect();
      if (r.height === 0 || r.bottom - edge <= 40 || el.querySelector('.step')) continue;
      const id = el.dataset['id'] ?? el.dataset['messages']?.split(' ')[0] ?? '';
      if (element(id) === el) return { id, top: r.top - edge };
    }
    return undefined;
  };
  const hold = () => { anchor.current = here(); };
  const reached = useRef(0); // where the document was put, or scrolled to at the last event
  const put = (box: HTMLElement, y: number) => {
    box.scrollTop = y;
    reached.current = box.scrollTop;
  };
  const keep = (a: Anchor | undefined) => {
    const el = a && element(a.id);
    const box = scroll.current;
    if (box && el) put(box, box.scrollTop + el.getBoundingClientRect().top - top() - a.top);
  };

  useLayoutEffect(() => {
    const box = scroll.current;
    if (!box || !w) return;
    length.value = w.length;
    if (following.current || !seen.current) seen.current = w.length;
    const a = anchor.current;
    anchor.current = undefined;
    if (a) keep(a);
    else if (following.current) put(box, box.scrollHeight);
    look();
  }, [w, level]);
  // Texts and images get their heights later: what is read stays where it is.
  const steady = useRef<Anchor | undefined>(undefined);
  const steadyAt = useRef(0); // where the document was scrolled to then
  useEffect(() => {
    const box = scroll.current;
    const grown = new ResizeObserver(() => {
      if (!box) return;
      if (following.current) put(box, box.scrollHeight);
      else if (box.scrollTop === steadyAt.current) keep(steady.current);
      // Else a key has moved it since, and look comes.
    });
    if (box?.firstElementChild) grown.observe(box.querySelector('.turns') ?? box.firstElementChild);
    return () => grown.disconnect();
  }, []);

  const open = async () => {
    const kept = anchorOf();
    const place = kept ? around(kept.id) : await placeOf(path, query.value);
    if (!place) return;
    following.current = !!place['last'];
    missed.value = 0;
    const there = m && !kept ? element(m) : undefined;
    if (!there) {
      if (kept) anchor.current = kept;
      if (!(await list.show(place)) && m) await elsewhere(m);
    }
    if (m && !kept) element(m)?.scrollIntoView({ block: 'start' });
    else if (p && !kept) position(Number(p))?.scrollIntoView({ block: 'start' });
    look();
  };
  const position = (n: number): HTMLElement | undefined => {
    const all = [...(scroll.current?.querySelectorAll<HTMLElement>('[data-position]') ?? [])];
    return all.find((el) => Number(el.dataset['position']) >= n) ?? all[all.length - 1];
  };
  /** Opens a branch that shows a message which this one does not. */
  const elsewhere = async (id: string) => {
    for (const b of branches.filter((x) => x.name !== branch).slice(0, 200)) {
      try {
        await get<Message>(`/contexts/${segment(c.id)}/branches/${segment(b.name)}/parts`, { around: id });
        go(changed({ b: b.name, not: branch }), true);
        return;
      } catch (e) {
        if (!(e instanceof Problem)) return;
      }
    }
    list.failed.value = 'No branch shows this message any more';
  };
  // Keys that are pressed while a place is on its way move from there.
  const waiting = useRef<(() => void)[] | undefined>(undefined);
  const leads = useRef(0); // the newest way counts
  const arrived = () => {
    const keys = waiting.current;
    waiting.current = undefined;
    keys?.forEach((run) => run());
  };
  const arriving = (run: () => void) => waiting.current ? void waiting.current.push(run) : run();
  const lead = (show: () => Promise<unknown>) => {
    waiting.current ??= [];
    const mine = ++leads.current;
    void show().then(() => { if (mine === leads.current) arrived(); });
  };
  useEffect(() => {
    lead(() => open().catch((e: unknown) => { list.failed.value = e instanceof Error ? e.message : String(e); }));
  }, [m, p, q.get('turn'), q.get('at'), list]);

  // What other processes append comes in at most ten times a second, and one look after the other.
  const seen = useRef(0); // messages that there were when the end was last in view
  useEffect(() => {
    let timer = 0;
    let [busy, again] = [false, false];
    let [told, looked] = [-1, 0]; // messages of the branch, if an event said so; when the last look began
    const look = async () => {
      const now = list.win.value;
      again = !now && !list.failed.value; // the window may be older than what was told
      if (!now) return;
      const messages = told >= 0 ? told : (await get<{ messages: number }>(path)).messages;
      told = -1;
      if (!following.current) missed.value = Math.max(missed.value, messages - seen.current);
      const more = messages - now.length; // the window may have taken some in itself
      if (more <= 0) return;
      if (Date.now() - saidAt.current > quiet) {
        saidAt.current = Date.now();
        said.value = counted(more, 'new message');
      }
      if (now.to < now.length) list.win.value = { ...(list.win.value ?? now), length: messages };
      else {
        if (!following.current) hold();
        if (following.current && more > tooFar) await list.show(atEnd);
        else await list.grow();
        if (!list.failed.value && (list.win.value?.length ?? 0) < messages) again = true; // the window moved meanwhile
      }
    };
    const soon = () => {
      if (busy) again = true;
      if (busy || timer) return;
      timer = window.setTimeout(async () => {
        [timer, busy, again, looked] = [0, true, false, Date.now()];
        await look().catch(() => undefined); // the next connection looks again
        busy = false;
        if (again) soon();
      }, Math.max(0, looked + paint - Date.now()));
    };
    const stop = listen((e) => {
      if (e.record === 'resync') return void list.show(atEnd);
      const here = e.record === 'message' && e.context === c.id && e.branch === branch;
      if (here && e.position !== undefined) told = Math.max(told, e.position + 1);
      if (e.record === 'ready') told = -1;
      if (here || e.record === 'ready') soon();
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [path]);

  const words = q.get('q') ?? '';
  useEffect(() => markWords(scroll.current, words), [words]);

  const looking = useRef(0);
  const kept = useRef(0);
  const onScroll = () => {
    const now = list.win.value;
    const box = scroll.current;
    if (!box || !now) return;
    const end = box.scrollHeight - box.scrollTop - box.clientHeight;
    // Who follows, and did not move up, still does: texts have grown since the end was scrolled to.
    const still = following.current && box.scrollTop >= reached.current;
    following.current = now.to >= now.length && (end < near || still);
    reached.current = box.scrollTop;
    if (following.current) {
      missed.value = 0;
      seen.current = now.length;
    }
    if (!looking.current) looking.current = requestAnimationFrame(() => { looking.current = 0; look(); });
    clearTimeout(kept.current);
    kept.current = window.setTimeout(() => {
      const a = following.current ? undefined : here();
      history.replaceState(a ? { anchor: a } : null, '');
    }, 200);
  };
  useEffect(() => () => clearTimeout(kept.current), []);

  /** Sees what is in view, and loads more before its ends come near. */
  const look = () => {
    const box = scroll.current;
    const now = list.win.value;
    if (!box || !now) return;
    const room = box.clientHeight;
    const full = box.scrollHeight > 7 * room;
    if (box.scrollTop < 2 * room) void list.more(true, full, hold);
    else if (box.scrollHeight - box.scrollTop - room < 2 * room) void list.more(false, full, hold);
    [steady.current, steadyAt.current] = [here(), box.scrollTop];
    const edge = top();
    let [from, to] = [-1, 0];
    for (const el of box.querySelectorAll<HTMLElement>('[data-position]')) {
      const r = el.getBoundingClientRect();
      if (r.bottom > edge + 60 && r.height > 0 && from < 0) from = Number(el.dataset['position']);
      if (r.top < edge + room) to = Number(el.dataset['position']);
    }
    const turn = now.turns.find((x) => from >= x.from && from < x.to)?.number ?? -1;
    const was = reading.value;
    if (from >= 0 && (was.from !== from || was.to !== to || was.turn !== turn)) reading.value = { from, to: Math.max(to, from), turn };
    for (const turn of box.querySelectorAll<HTMLElement>('.turn')) {
      const prompt = turn.querySelector('.prompt');
      const gone = !!prompt && prompt.getBoundingClientRect().bottom < edge + 36 && turn.getBoundingClientRect().bottom > edge;
      turn.toggleAttribute('data-gone', gone);
    }
  };

  const toEnd = () => {
    following.current = true;
    missed.value = 0;
    const now = list.win.value;
    seen.current = now?.length ?? 0;
    if (m || p) leadTo(changed({ p: '', m: '' }));
    else if (now && now.to >= now.length && scroll.current) scroll.current.scrollTop = scroll.current.scrollHeight;
    else lead(() => list.show(atEnd));
  };
  const leadTo = (address: string) => {
    waiting.current ??= [];
    leads.current++; // the effect of the address shows it
    go(address);
  };
  const toBegin = () => {
    following.current = false;
    const box = scroll.current;
    if (list.win.value?.from === 0 && box) box.scrollTop = 0;
    else if (p === '0' && !m) lead(() => list.show({ from: 0, to: 40 }).then(() => position(0)?.scrollIntoView({ block: 'start' })));
    else leadTo(changed({ p: 0, m: '' }));
  };
  useTalkKeys(scroll, arriving, toEnd, toBegin, () => { following.current = false; });

  const l = live.value.find((x) => x.context === c.id && x.branch === branch);
  return (
    <div class="talk">
      <div class="scroll" ref={scroll} onScroll={onScroll} tabIndex={0} aria-label="Conversation">
        {list.failed.value && <p class="gap bad" role="alert"><T s={list.failed.value} /></p>}
        <div class="turns" role={w?.length === 0 ? undefined : 'feed'} aria-busy={!w && !list.failed.value}>
          {w ? shownTurns.map(({ turn, messages, last }) => (
            <TurnView key={turn.number} turn={turn} messages={messages} last={last} live={last ? l : undefined} level={level}
              path={path} sides={sides} show={m ?? ''} usage={usage.get(turn.id ?? '')} fork={fork} />
          )) : !list.failed.value && <Skeleton />}
          {w && w.length === 0 && <EmptyBranch id={c.id} branch={branch} />}
        </div>
      </div>
      {missed.value > 0 && <button class="pill" onClick={toEnd}>{counted(missed.value, 'new message')} <Icon name="down" /></button>}
      <p class="vh" role="status">{said.value}</p>
    </div>
  );
}

interface Shown {
  turn: Turn;
  messages: Message[];
  last: boolean; // of the branch
}

/** The turns of a window. One that is as before stays the same object, and is not drawn anew. */
function turnsIn(w: Window, before: Shown[]): Shown[] {
  const old = new Map(before.map((s) => [s.turn.number, s]));
  const all = w.turns.map((turn) => {
    const messages = w.messages.filter((m) => m.position >= turn.from && m.position < turn.to);
    const was = old.get(turn.number);
    const same = was?.messages.length === messages.length && messages.every((m, i) => m === was.messages[i]);
    return { turn, messages: same ? was.messages : messages, last: w.to >= w.length && turn.to >= w.length };
  });
  return all.filter((t) => t.messages.length > 0);
}

function Skeleton() {
  return <div class="skeleton" aria-hidden="true">{[72, 96, 54, 88, 64].map((width) => <i style={{ width: width + '%' }} />)}</div>;
}

function EmptyBranch({ id, branch }: { id: string; branch: string }) {
  return (
    <div class="empty">
      <p>No messages yet</p>
      {/^[A-Za-z0-9._/-]+$/.test(branch) && <code>ctxtool append {id.slice(0, 8)} --branch {branch} "…"</code>}
    </div>
  );
}

/** Moves through turns and messages, and opens what they fold. */
function useTalkKeys(
  scroll: { current: HTMLDivElement | null }, arriving: (run: () => void) => void,
  toEnd: () => void, toBegin: () => void, leave: () => void,
): void {
  const edge = () => scroll.current?.getBoundingClientRect().top ?? 0;
  const turns = () => [...(scroll.current?.querySelectorAll<HTMLElement>('.turn') ?? [])];
  const current = () => turns().find((t) => t.getBoundingClientRect().bottom > edge() + 48);
  const turn = (by: number) => {
    const all = turns();
    const now = current();
    const at = now ? all.indexOf(now) : 0;
    leave();
    if (by < 0 && now && now.getBoundingClientRect().top < edge() - 8) now.scrollIntoView({ block: 'start' });
    else if (all[at + by]) all[at + by]?.scrollIntoView({ block: 'start' });
    else if (by > 0) toEnd();
  };
  const message = (by: number) => {
    const all = [...(scroll.current?.querySelectorAll<HTMLElement>('[data-id]') ?? [])];
    const focused = (document.activeElement as HTMLElement | null)?.closest<HTMLElement>('[data-id]');
    const first = all.findIndex((el) => el.getBoundingClientRect().top >= edge() + 30);
    const at = focused && all.includes(focused) ? all.indexOf(focused) + by : first;
    leave();
    all[at]?.focus({ preventScroll: true });
    all[at]?.scrollIntoView({ block: 'nearest' });
  };
  const change = (by: number) => {
    const all = [...(scroll.current?.querySelectorAll<HTMLElement>('.diff') ?? [])];
    const tops = all.map((el) => el.getBoundingClientRect().top - edge() - 44);
    const at = by > 0 ? tops.findIndex((t) => t > 8) : tops.findLastIndex((t) => t < -8);
    leave();
    all[at]?.scrollIntoView({ block: 'start' });
  };
  const folds = (all: boolean) => {
    const focused = document.activeElement;
    const within = all ? current() : (focused?.closest('[data-id]') ?? current());
    const buttons = [...(within?.querySelectorAll<HTMLButtonElement>('button[aria-expanded]') ?? [])];
    const opens = buttons.some((b) => b.getAttribute('aria-expanded') === 'false');
    for (const b of all ? buttons.filter((x) => (x.getAttribute('aria-expanded') === 'false') === opens) : buttons.slice(0, 1)) b.click();
  };
  useKeys('Reading', [
    { keys: 'j | ]', title: 'Next turn', run: () => arriving(() => turn(1)) },
    { keys: 'k | [', title: 'Previous turn', run: () => arriving(() => turn(-1)) },
    { keys: 'J', title: 'Next message', run: () => arriving(() => message(1)) },
    { keys: 'K', title: 'Previous message', run: () => arriving(() => message(-1)) },
    { keys: '}', title: 'Next changed file', run: () => arriving(() => change(1)) },
    { keys: '{', title: 'Previous changed file', run: () => arriving(() => change(-1)) },
    { keys: 'g g', title: 'Beginning', run: () => arriving(toBegin) },
    { keys: 'G | End', title: 'End, and follow', run: () => arriving(toEnd) },
    { keys: 'o', title: 'Open or fold', run: () => folds(false) },
    { keys: 'O', title: 'Open or fold all of this turn', run: () => folds(true) },
  ], false);
}
