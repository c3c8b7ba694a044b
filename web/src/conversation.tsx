import { useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { get, segment, type Branch, type BranchMap, type Context, type Messages, type Turn, type UsageRow } from './api';
import { forkBehind, labelAll, reload, rename, trash } from './actions';
import { Views } from './contextbar';
import { Badge, Icon, toolName } from './icons';
import { useKeys } from './keys';
import { listen, live } from './live';
import { Menu } from './menu';
import { MiniMap } from './minimap';
import { Navigator } from './navigator';
import { resumeCommand } from './resume';
import { changed, go, link, query } from './route';
import { stateText, Switch } from './shell';
import { base } from './library';
import { writable } from './store';
import { Talk, type Reading } from './talk';
import { copy } from './undo';
import { count, money, T, tokens, useTitle } from './text';
import { type Level } from './turn';

const mostTurns = 500; // of which the page asks what each cost

/** What a conversation and its turns cost. */
interface Spent {
  sum?: UsageRow;
  turns: Map<string, UsageRow>;
}

export function Conversation({ parts }: { parts: string[] }) {
  const id = parts[1] ?? '';
  const context = useSignal<Context | undefined>(undefined);
  const branches = useSignal<Branch[]>([]);
  const failed = useSignal('');
  useTitle(context.value?.title);
  const load = async () => {
    try {
      const [c, b] = await reload(id);
      context.value = c;
      branches.value = b;
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
    }
  };
  useEffect(() => {
    void load();
    const stop = listen((e) => {
      if (e.context !== id || e.record === 'message') return;
      if (e.record === 'context' && (e.event ?? '').endsWith('removed')) failed.value = 'This conversation is not in the store any more. The trash has it for a while.';
      else void load();
    });
    return stop;
  }, [id]);
  if (failed.value) return <div class="empty" role="alert"><T s={failed.value} /></div>;
  const c = context.value;
  if (!c) return <div class="empty" aria-busy="true" />;
  const branch = query.value.get('b') ?? c.active_branch;
  return <View key={branch} c={c} branch={branch} branches={branches.value} load={load} />;
}

interface Props {
  c: Context;
  branch: string;
  branches: Branch[];
  load: () => Promise<void>;
}

function View({ c, branch, branches, load }: Props) {
  const path = `/contexts/${segment(c.id)}/branches/${segment(branch)}`;
  const map = useSignal<BranchMap | undefined>(undefined);
  const spent = useSignal<Spent>({ turns: new Map() });
  const reading = useSignal<Reading>({ from: 0, to: 0, turn: -1 });
  const length = useSignal(0);
  const panel = useSignal(false);
  const began = useSignal(c.active_branch);
  const rewound = useSignal(-1); // the messages that are left, if there were more here
  const shown = branches.find((b) => b.name === branch);
  useEffect(() => {
    rewound.value = shown && length.value > shown.messages ? shown.messages : -1;
  }, [branches]);
  const q = query.value;
  const level = ([1, 2, 3].find((n) => String(n) === q.get('d')) ?? 2) as Level;

  useEffect(() => {
    if (length.value === 0) return; // the talk comes first
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get<BranchMap>(path + '/map', {}, abort.signal).then((m) => { map.value = m; }, () => undefined);
    }, map.value ? 400 : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, length.value]);
  useEffect(() => {
    if (map.value) void usageOf(c.id, map.value.turns).then((s) => { spent.value = s; }, () => undefined);
  }, [c.id, map.value?.turns]);

  const jump = (p: number, replace = false) => go(changed({ p, m: '', not: '' }), replace);
  const to = (view: string) => () => go(link(['c', c.id, view], { b: branch }));
  const known = useRef({ c, branches });
  known.current = { c, branches };
  const fork = useCallback((t: Turn) => forkBehind(known.current.c, branch, t, known.current.branches, load), [branch]);
  const forkHere = async () => {
    const got = await get<{ turns: Turn[] }>(path + '/turns', { at: reading.value.from, limit: 1 });
    if (got.turns[0]) fork(got.turns[0]);
  };
  const lastFailure = useRef<{ id: string; position: number } | undefined>(undefined);
  const hit = async (by: number) => {
    const got = await get<{ hits: { id: string; position: number }[] }>('/search', { q: q.get('q') ?? '', role: q.get('role') ?? '', context: c.id, branch, limit: 200 });
    const all = got.hits.sort((a, b) => a.position - b.position);
    const now = all.findIndex((h) => h.id === q.get('m'));
    const next = now >= 0 ? all[now + by] : by > 0 ? all.find((h) => h.position > reading.value.from) : all.findLast((h) => h.position < reading.value.from);
    if (next) go(changed({ m: next.id, p: '' }), true);
  };
  const failure = async (by: number) => {
    const m = map.value;
    const id = query.value.get('m');
    const now = lastFailure.current?.id === id && id ? lastFailure.current.position : by > 0 ? reading.value.from - 1 : reading.value.from;
    for (let i = Math.floor(Math.max(0, now) / (m?.size ?? 1)); m && i >= 0 && i < m.failures.length; i += by) {
      if (!m.failures[i]) continue;
      const got = await get<Messages>(path + '/parts', { from: i * m.size, to: (i + 1) * m.size });
      const all = got.messages.flatMap((x) => x.parts.filter((p) => p.failed || p.results?.some((r) => r.failed)).map(() => ({ id: x.id, position: x.position })));
      const next = by > 0 ? all.find((f) => f.position > now) : all.findLast((f) => f.position < now);
      if (next) {
        lastFailure.current = next;
        return go(changed({ m: next.id, p: '', turn: '', at: '' }), true);
      }
    }
  };
  const filter = () => {
    panel.value = true;
    go(changed({ nav: '' }), true);
    const field = () => document.querySelector<HTMLInputElement>('.nfil input');
    field()?.focus();
    requestAnimationFrame(() => field()?.focus()); // where it was not in view
  };
  const resume = resumeCommand(c);
  const detail = (d: Level) => go(changed({ d: d === 2 ? '' : d }), true);
  useKeys('This conversation', [
    { keys: 's', title: 'Search this conversation', run: () => go(link(['search'], { context: c.id })) },
    { keys: '1', title: 'Prompts and last answers', run: () => detail(1) },
    { keys: '2', title: 'Turns', run: () => detail(2) },
    { keys: '3', title: 'Everything', run: () => detail(3) },
    { keys: 't', title: 'Turns and files beside it', run: () => { panel.value = !panel.value; } },
    { keys: 'e', title: 'Next failure', run: () => void failure(1) },
    { keys: 'E', title: 'Previous failure', run: () => void failure(-1) },
    { keys: 'p', title: 'Filter prompts', run: filter },
    { keys: 'b', title: 'Branches', run: to('branches') },
    { keys: 'c', title: 'Compare', run: () => go(link(['c', c.id, 'compare'], { l: c.active_branch, r: branches.find((b) => b.name !== c.active_branch)?.name })) },
    { keys: 'a', title: 'Assemble', run: to('assemble') },
    { keys: 'y', title: 'Copy the link', run: () => copy(location.href, 'Link') },
    ...(resume ? [{ keys: 'Y', title: 'Copy the command to resume', run: () => copy(resume, 'Command') }] : []),
    ...(writable.value ? [
      { keys: 'f', title: 'Fork here', run: () => void forkHere() },
      { keys: 'F2', title: 'Rename', run: () => rename(c, () => void load()) },
    ] : []),
    ...(q.get('q') ? [
      { keys: 'n', title: 'Next hit', run: () => void hit(1) },
      { keys: 'N', title: 'Previous hit', run: () => void hit(-1) },
    ] : []),
    { keys: 'Escape', title: 'Back', run: () => { if (panel.value) panel.value = false; else if (q.get('q')) history.back(); else go('/'); } },
  ]);

  const l = live.value.find((x) => x.context === c.id && x.branch === branch);
  const labels = c.labels ?? {};
  const not = q.get('not');
  return (
    <>
      <header class="bar">
        <a class="ghost" href={link([])} aria-label="Library"><Icon name="back" /></a>
        <span class="crumb"><T class="ell" s={base(labels['project'])} />{labels['project'] && <span>/</span>}</span>
        <h1 class="ell"><T s={c.title || 'Untitled'} title /></h1>
        {l && <span class={'chip ' + (l.state === 'works' ? 'live' : 'warn')} title={stateText[l.state]}>{l.state}</span>}
        <span class="sp" />
        <Views id={c.id} branch={branch} here="" />
        <button class="ghost aside" aria-pressed={panel.value} aria-label="Turns and files" onClick={() => { panel.value = !panel.value; }}><Icon name="list" /></button>
        <Menu label="More" choices={[
          { title: 'Copy the link', run: () => copy(location.href, 'Link') },
          ...(resume ? [{ title: 'Copy the command to resume', run: () => copy(resume, 'Command') }] : []),
          { title: 'Copy the id', run: () => copy(c.id, 'Id') },
          ...(writable.value ? [
            { title: 'Rename', run: () => rename(c, () => void load()) },
            { title: 'Set a label', run: () => labelAll([c], () => void load()) },
            { title: 'Move to the trash', danger: true, run: () => trash(c) },
          ] : []),
        ]} />
      </header>
      <div class="facts">
        <div class="known">
          <Pick branches={branches} now={branch} />
          <span><Badge tool={c.tool} /> <b><T s={toolName(c.tool)} /></b> <T s={c.model} /></span>
          <span><b class="num">{count(length.value || (shown?.messages ?? c.messages))}</b> messages</span>
          {map.value && <span><b class="num">{count(map.value.turns)}</b> {map.value.turns === 1 ? 'turn' : 'turns'}</span>}
          {spent.value.sum && spent.value.sum.total > 0 && <span><b class="num">{tokens(spent.value.sum.total)}</b> tokens</span>}
          {spent.value.sum?.cost !== undefined && <span><b class="num">{money(spent.value.sum)}</b></span>}
        </div>
        <span class="seg" role="group" aria-label="Detail">
          <Switch name="d" value="1" now={String(level)}>Prompts</Switch>
          <Switch name="d" value="" now={level === 2 ? '' : 'x'}>Turns</Switch>
          <Switch name="d" value="3" now={String(level)}>Everything</Switch>
        </span>
      </div>
      {not && <div class="strip">Shown on <T s={branch} />: <T s={not} /> does not have the message</div>}
      {c.active_branch !== began.value && c.active_branch !== branch && (
        <div class="strip"><T s={c.active_branch} /> is now the active branch. <a class="link" href={changed({ b: c.active_branch, m: '', p: '' })}>Go</a></div>
      )}
      {rewound.value >= 0 && <div class="strip">The branch was rewound to {count(rewound.value)} messages. What was here stays until you leave.</div>}
      <div class={panel.value ? 'conv open' : 'conv'}>
        <Talk c={c} branch={branch} branches={branches} level={level} reading={reading} length={length} usage={spent.value.turns} fork={fork} />
        <aside class="navi" aria-label="Turns">
          {map.value ? <MiniMap map={map.value} reading={reading} jump={jump} /> : <span />}
          <Navigator path={path} context={c.id} branch={branch} branches={branches} map={map.value} usage={spent.value.turns} reading={reading}
            jump={(t) => { go(t.id ? changed({ m: t.id, p: '', not: '' }) : changed({ p: t.from, m: '', not: '' })); if (innerWidth <= 1180) panel.value = false; }} />
        </aside>
      </div>
    </>
  );
}

async function usageOf(context: string, turns: number): Promise<Spent> {
  const by = turns > mostTurns ? { by: 'context', limit: 1 } : { by: 'prompt', limit: 2 * mostTurns };
  const got = await get<{ rows: UsageRow[]; sum: UsageRow }>('/usage', { context, ...by });
  return { sum: got.sum, turns: new Map(got.rows.filter((r) => r.prompt).map((r) => [r.prompt ?? '', r])) };
}

function Pick({ branches, now }: { branches: Branch[]; now: string }) {
  if (branches.length < 2) return <span><Icon name="branch" /> <T s={now} /></span>;
  return (
    <label class="pick">
      <Icon name="branch" />
      <span class="vh">Branch</span>
      <select value={now} onChange={(e) => go(changed({ b: e.currentTarget.value, m: '', p: '', not: '' }))}>
        {branches.map((b) => <option value={b.name}>{b.name.slice(0, 60)}</option>)}
      </select>
    </label>
  );
}
