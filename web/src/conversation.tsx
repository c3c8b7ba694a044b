import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { get, post, segment, type Branch, type BranchMap, type Context, type Message, type Messages, type Turn, type Turns } from './api';
import { Badge, Icon, toolName } from './icons';
import { listen, live } from './live';
import { MiniMap } from './minimap';
import { Navigator } from './navigator';
import { changed, go, link, query } from './route';
import { stateText } from './shell';
import { base } from './library';
import { count, counted, T } from './text';
import { TurnView } from './turn';

const step = 80; // messages to load at a time
const held = 400; // messages in the document

interface Window {
  messages: Message[];
  from: number;
  to: number;
  length: number;
}

export function Conversation({ parts }: { parts: string[] }) {
  const id = parts[1] ?? '';
  const context = useSignal<Context | undefined>(undefined);
  const branches = useSignal<Branch[]>([]);
  const failed = useSignal('');
  useEffect(() => {
    Promise.all([get<Context>('/contexts/' + segment(id)), get<{ branches: Branch[] }>(`/contexts/${segment(id)}/branches`)]).then(([c, b]) => {
      context.value = c;
      branches.value = b.branches;
      document.title = (c.title || 'Untitled').slice(0, 100) + ' · ctxdir';
    }, (e: unknown) => {
      failed.value = e instanceof Error ? e.message : String(e);
    });
    return () => {
      document.title = 'ctxdir';
    };
  }, [id]);
  if (failed.value) return <div class="empty" role="alert"><T s={failed.value} /></div>;
  const c = context.value;
  if (!c) return <div class="empty" aria-busy="true" />;
  const branch = query.value.get('b') ?? c.active_branch;
  return <Talk key={branch} c={c} branch={branch} branches={branches.value} />;
}

function Talk({ c, branch, branches }: { c: Context; branch: string; branches: Branch[] }) {
  const path = `/contexts/${segment(c.id)}/branches/${segment(branch)}`;
  const win = useSignal<Window | undefined>(undefined);
  const turns = useSignal<Turn[]>([]);
  const map = useSignal<BranchMap | undefined>(undefined);
  const failed = useSignal('');
  const missed = useSignal(0);
  const reading = useSignal(0);
  const following = useRef(false);
  const scroll = useRef<HTMLDivElement>(null);
  const anchor = useRef<{ id: string; top: number } | undefined>(undefined);
  const busy = useRef(false);

  const fetchTurns = async (w: Window) => {
    const got = await get<Turns>(path + '/turns', { at: w.from, limit: 200 });
    turns.value = got.turns.filter((t) => t.from < w.to);
  };
  const show = async (q: Record<string, string | number>) => {
    try {
      const got = await get<Messages>(path + '/parts', q);
      // A window begins with a turn.
      const first = await get<Turns>(path + '/turns', { at: got.from, limit: 1 });
      const begin = first.turns[0]?.from ?? got.from;
      if (begin < got.from && got.from - begin <= 200) {
        const more = await get<Messages>(path + '/parts', { from: begin, to: got.from });
        got.messages = [...more.messages, ...got.messages];
        got.from = begin;
      }
      await fetchTurns(got);
      win.value = got;
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
    }
  };
  const more = async (up: boolean) => {
    const w = win.value;
    if (!w || busy.current || (up ? w.from === 0 : w.to >= w.length)) return;
    busy.current = true;
    try {
      const got = await get<Messages>(path + '/parts', up ? { from: Math.max(0, w.from - step), to: w.from } : { from: w.to, to: Math.min(w.to + step, w.length) });
      hold();
      let messages = up ? [...got.messages, ...w.messages] : [...w.messages, ...got.messages];
      let { from, to } = { from: Math.min(w.from, got.from), to: Math.max(w.to, got.to) };
      if (messages.length > held) {
        messages = up ? messages.slice(0, held) : messages.slice(-held);
        if (up) to = (messages[messages.length - 1]?.position ?? to) + 1;
        else from = messages[0]?.position ?? from;
      }
      const next = { messages, from, to, length: got.length };
      await fetchTurns(next);
      win.value = next;
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
    } finally {
      busy.current = false;
    }
  };
  /** Remembers where what is read stands, so that it does not move. */
  const hold = () => {
    const box = scroll.current;
    if (!box) return;
    for (const el of box.querySelectorAll<HTMLElement>('[data-id]')) {
      const top = el.getBoundingClientRect().top - box.getBoundingClientRect().top;
      if (top >= -4 || el.getBoundingClientRect().bottom - box.getBoundingClientRect().top > 40) {
        anchor.current = { id: el.dataset['id'] ?? '', top };
        return;
      }
    }
  };
  const w = win.value;
  useLayoutEffect(() => {
    const box = scroll.current;
    if (!box || !w) return;
    const a = anchor.current;
    anchor.current = undefined;
    if (a) {
      const el = box.querySelector<HTMLElement>(`[data-id="${CSS.escape(a.id)}"]`);
      if (el) box.scrollTop += el.getBoundingClientRect().top - box.getBoundingClientRect().top - a.top;
    } else if (following.current) {
      box.scrollTop = box.scrollHeight;
    }
  }, [w]);

  const at = query.value.get('m');
  const position = query.value.get('p');
  useEffect(() => {
    following.current = !at && !position;
    const q: Record<string, string | number> = at ? { around: at, before: 40, after: 80 }
      : position ? { from: Math.max(0, Number(position) - 2), to: Number(position) + 120 } : { last: 120 };
    void show(q).then(() => {
      requestAnimationFrame(onScroll);
      if (at) scroll.current?.querySelector(`[data-id="${CSS.escape(at)}"]`)?.scrollIntoView({ block: 'start' });
      else if (position && scroll.current) scroll.current.scrollTop = 0;
    });
    void get<BranchMap>(path + '/map').then((m) => {
      map.value = m;
    }, () => undefined);
  }, [at, position]);
  useSignalEffect(() => listen((e) => {
    if (e.record !== 'message' || e.context !== c.id || e.branch !== branch) return;
    const now = win.value;
    if (!now) return;
    if (now.to < now.length || !following.current) {
      missed.value++;
      win.value = { ...now, length: now.length + 1 };
      return;
    }
    void show({ last: Math.min(now.to - now.from + 1, 200) });
  }));

  const onScroll = () => {
    const box = scroll.current;
    if (!box || !win.value) return;
    const end = box.scrollHeight - box.scrollTop - box.clientHeight;
    following.current = end < 48 && win.value.to >= win.value.length;
    if (following.current) missed.value = 0;
    if (box.scrollTop < box.clientHeight) void more(true);
    if (end < box.clientHeight) void more(false);
    const top = box.getBoundingClientRect().top;
    for (const el of box.querySelectorAll<HTMLElement>('[data-position]')) {
      if (el.getBoundingClientRect().bottom > top + 60) {
        reading.value = Number(el.dataset['position']);
        break;
      }
    }
  };
  const jump = (to: number) => go(changed({ p: to, m: '' }));
  const toEnd = () => {
    following.current = true;
    missed.value = 0;
    if (at || position) go(changed({ p: '', m: '' }));
    else void show({ last: 120 });
  };
  const l = live.value.find((x) => x.context === c.id && x.branch === branch);
  const label = c.labels ?? {};
  return (
    <>
      <header class="bar">
        <a class="ghost" href="/" aria-label="Library"><Icon name="back" /></a>
        <span class="crumb"><T class="ell" s={base(label['project'])} />{label['project'] && <span>/</span>}</span>
        <h1 class="ell"><T s={c.title || 'Untitled'} title /></h1>
        {l && <span class={'chip ' + (l.state === 'works' ? 'live' : 'warn')} title={stateText[l.state]}>{l.state}</span>}
        <span class="sp" />
        <a class="btn" href={link(['c', c.id, 'export'], { b: branch })}>Export</a>
      </header>
      <div class="facts">
        <Branches branches={branches} now={branch} />
        <span><Badge tool={c.tool} /> <b>{toolName(c.tool)}</b> <T s={c.model} /></span>
        <span><b class="num">{count(w?.length ?? c.messages)}</b> messages</span>
        {map.value && <span><b class="num">{count(map.value.turns)}</b> {map.value.turns === 1 ? 'turn' : 'turns'}</span>}
      </div>
      <div class="conv">
        <div class="talk">
          <div class="scroll" ref={scroll} onScroll={onScroll} tabIndex={0} aria-label="Conversation">
            {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
            <div class="turns" role="feed" aria-busy={!w}>
              {w && turnsOf(w, turns.value).map(({ turn, messages }) => (
                <TurnView key={turn.number} turn={turn} messages={messages} last={w.to >= w.length && turn.to >= w.length} live={l} context={c.id} />
              ))}
              {w && w.length === 0 && <EmptyBranch id={c.id} branch={branch} />}
            </div>
          </div>
          {missed.value > 0 && (
            <button class="pill" onClick={toEnd}>{counted(missed.value, 'new message')} <Icon name="down" /></button>
          )}
        </div>
        <aside class="navi" aria-label="Turns">
          {map.value && <MiniMap map={map.value} from={reading.value} to={reading.value + 12} jump={jump} />}
          <Navigator path={path} turns={map.value?.turns ?? 0} reading={reading.value} jump={(t) => go(changed({ m: t.id, p: '' }))} />
        </aside>
      </div>
    </>
  );
}

function turnsOf(w: Window, turns: Turn[]): { turn: Turn; messages: Message[] }[] {
  const out: { turn: Turn; messages: Message[] }[] = [];
  for (const turn of turns) {
    const messages = w.messages.filter((m) => m.position >= turn.from && m.position < turn.to);
    if (messages.length > 0) out.push({ turn, messages });
  }
  return out;
}

function Branches({ branches, now }: { branches: Branch[]; now: string }) {
  if (branches.length < 2) return <span><Icon name="branch" /> <T s={now} /></span>;
  return (
    <label class="pick">
      <Icon name="branch" />
      <span class="vh">Branch</span>
      <select value={now} onChange={(e) => go(changed({ b: e.currentTarget.value, m: '', p: '' }))}>
        {branches.map((b) => <option value={b.name}>{b.name.slice(0, 60)}</option>)}
      </select>
    </label>
  );
}

function EmptyBranch({ id, branch }: { id: string; branch: string }) {
  return (
    <div class="empty">
      <p>No messages yet</p>
      {/^[A-Za-z0-9._/-]+$/.test(branch) && <code>ctxtool append {id.slice(0, 8)} --branch {branch} "…"</code>}
    </div>
  );
}

/** Makes a branch active. */
export const switchTo = (id: string, branch: string) => post(`/contexts/${segment(id)}/branches/${segment(branch)}/switch`, {});
