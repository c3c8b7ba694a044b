import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { labelAll, trashAll } from './actions';
import { getShared, type Context, type ContextList, type Live } from './api';
import { conditionsOf, contextList } from './contexts';
import { Filters } from './filters';
import { Badge, Icon } from './icons';
import { useKeys } from './keys';
import { changes, live, now } from './live';
import { Rows } from './rows';
import { rootOf } from './root';
import { changed, go, link, query } from './route';
import { stateText, Switch } from './shell';
import { store, writable } from './store';
import { ago, count, counted, dayOf, T, timeOf } from './text';

interface Row {
  kind: 'group' | 'context' | 'live';
  key: string;
  title?: string;
  note?: string;
  context?: Context;
  owner?: string; // who shares it
  live?: Live;
}

/** The contexts that a user shares. */
interface FromOther {
  owner: string;
  contexts: Context[];
  more: boolean;
}

const shownOfOthers = 5;

const rest = 2000; // ms that the pointer is outside of the list before rows may move

export function Library(_: { parts: string[] }) {
  const all = useMemo(contextList, []);
  const selected = useSignal<Set<string>>(new Set());
  const inside = useRef(false);
  const timer = useRef(0);
  const q = query.value;
  const sort = q.get('sort') ?? 'updated';
  const group = q.get('group') ?? (sort === 'updated' || sort === 'created' ? 'day' : 'none'); // days would break another order up
  const conditions = ['group', 'sort', 'title', 'tool', 'model', 'project', 'label', 'since'].map((name) => q.get(name));

  useEffect(() => {
    if (!q.get('title')) return void all.begin(conditionsOf(q));
    const wait = setTimeout(() => void all.begin(conditionsOf(q)), 120);
    return () => clearTimeout(wait);
  }, conditions);
  useSignalEffect(() => {
    if (changes.value > 0) void all.refresh(inside.current);
  });
  const shared = useSignal<FromOther[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    void sharedWith(store.value?.shared ?? [], q, abort.signal).then((found) => {
      if (!abort.signal.aborted) shared.value = found;
    });
    return () => abort.abort();
  }, [store.value?.shared, ...conditions]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const enter = () => {
    clearTimeout(timer.current);
    inside.current = true;
  };
  const leave = () => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      inside.current = false;
      all.settle();
    }, rest);
  };

  const list = all.list.value;
  const rows = rowsOf(list, conditions.slice(2).some(Boolean) ? [] : live.value, group, shared.value);
  const there = new Set(list.map((c) => c.id));
  const fresh = all.waiting.value?.filter((c) => !there.has(c.id)).length ?? 0;
  const mark = (r: Row) => {
    if (!r.context || r.owner) return;
    const next = new Set(selected.value);
    if (!next.delete(r.context.id)) next.add(r.context.id);
    selected.value = next;
  };
  return (
    <>
      <header class="bar">
        <h1>Library</h1>
        <span class="t3 s num">{list.length > 0 && `${count(list.length)}${all.next.value ? '+' : ''} shown`}</span>
        <span class="sp" />
        <label class="pick s t2">
          Sort
          <select value={sort} onChange={(e) => go(changed({ sort: e.currentTarget.value === 'updated' ? '' : e.currentTarget.value }), true)}>
            <option value="updated">newest</option>
            <option value="created">created</option>
            <option value="size">largest</option>
            <option value="title">title</option>
          </select>
        </label>
        <span class="seg" role="group" aria-label="Group">
          <Switch name="group" value={sort === 'updated' || sort === 'created' ? '' : 'day'} now={group === 'day' && (sort === 'updated' || sort === 'created') ? '' : group}>Day</Switch>
          <Switch name="group" value="project" now={group}>Project</Switch>
          <Switch name="group" value="none" now={group}>None</Switch>
        </span>
      </header>
      <Filters loaded={all.loaded.value} />
      {all.failed.value && (
        <p class="gap bad" role="alert"><T s={all.failed.value} /> <button class="link" onClick={() => void all.refresh(false)}>Try again</button></p>
      )}
      {rows.length === 0 && all.loaded.value ? (
        <div class="empty">
          <p>{conditions.slice(2).some(Boolean) ? 'No conversation meets these conditions' : 'The store has no conversation yet'}</p>
          {!conditions.slice(2).some(Boolean) && <code>ctxtool import</code>}
        </div>
      ) : (
        <div class="listed" onPointerEnter={enter} onPointerLeave={leave}>
          {fresh > 0 && <button class="pill top" onClick={all.settle}>{count(fresh)} new</button>}
          <Rows
            rows={rows}
            label="Conversations"
            height={(r) => (r.kind === 'live' ? 53 : r.kind === 'group' ? 37 : 40)}
            onEnd={() => void all.more()}
            open={(r) => r.owner ? location.assign(sharedLink(r.owner, r.context?.id)) : go(link(['c', r.context?.id ?? r.live?.context ?? '']))}
            mark={mark}
            marked={(r) => !!r.context && selected.value.has(r.context.id)}
          >
            {(r) =>
              r.kind === 'group' ? <Group title={r.title ?? ''} note={r.note ?? ''} owner={r.owner} />
              : r.kind === 'live' && r.live ? <LiveRow l={r.live} />
              : r.context ? <ContextRow c={r.context} group={group} owner={r.owner} /> : null
            }
          </Rows>
        </div>
      )}
      {selected.value.size > 0 && <Selection ids={[...selected.value]} all={list} clear={() => { selected.value = new Set(); void all.refresh(false); }} />}
    </>
  );
}

/** What can be done with the selected contexts. */
function Selection({ ids, all, clear }: { ids: string[]; all: Context[]; clear: () => void }) {
  const of = all.filter((c) => ids.includes(c.id));
  useKeys('Selected conversations', [{ keys: 'Escape', title: 'Select none', run: clear }]);
  return (
    <div class="undo" role="region" aria-label="Selection">
      <span class="num">{counted(ids.length, 'conversation')} selected</span>
      {writable.value && <button class="link" onClick={() => labelAll(of, clear)}>Set a label</button>}
      {writable.value && <button class="link del" onClick={() => trashAll(of, clear)}>Move to the trash</button>}
      <button class="link" onClick={clear}>None</button>
    </div>
  );
}

/** The address of what a user shares, or of one context of it. */
const sharedLink = (owner: string, context?: string): string => rootOf(owner) + '/' + (context ? 'c/' + encodeURIComponent(context) : '');

/** Asks for the newest contexts that others share. One who ended a share meanwhile has none. */
async function sharedWith(by: { owner: string }[], q: URLSearchParams, abort: AbortSignal): Promise<FromOther[]> {
  const found = await Promise.all(by.map(async ({ owner }) => {
    try {
      const got = await getShared<ContextList>(owner, '/contexts', { ...conditionsOf(q), limit: shownOfOthers, outline: true }, abort);
      return { owner, contexts: got.contexts, more: !!got.next };
    } catch {
      return { owner, contexts: [], more: false };
    }
  }));
  return found.filter((f) => f.contexts.length > 0);
}

/** Groups contexts: those that are live first, then what others share. */
function rowsOf(all: Context[], lively: Live[], group: string, shared: FromOther[]): Row[] {
  const rows: Row[] = [];
  if (lively.length > 0) {
    rows.push({ kind: 'group', key: 'live', title: 'Live', note: String(lively.length) });
    for (const l of lively) rows.push({ kind: 'live', key: 'live ' + l.context, live: l });
  }
  for (const s of shared) {
    const note = `${s.contexts.length}${s.more ? ' newest' : ''} · read-only`;
    rows.push({ kind: 'group', key: 'shared ' + s.owner, title: 'Shared by ' + s.owner, note, owner: s.owner });
    for (const c of s.contexts) rows.push({ kind: 'context', key: s.owner + ' ' + c.id, context: c, owner: s.owner });
  }
  const there = new Set(lively.map((l) => l.context));
  const rest = all.filter((c) => !there.has(c.id));
  if (group === 'none') {
    if (rest.length > 0) rows.push({ kind: 'group', key: 'all', title: 'All conversations', note: '' });
    for (const c of rest) rows.push({ kind: 'context', key: c.id, context: c });
    return rows;
  }
  const groups = new Map<string, { note: string; of: Context[] }>();
  for (const c of rest) {
    const [title, note] = group === 'project' ? [c.labels?.['project'] || 'No project', ''] : dayOf(new Date(c.updated_at ?? 0));
    const g = groups.get(title) ?? { note, of: [] };
    g.of.push(c);
    groups.set(title, g);
  }
  for (const [title, g] of groups) {
    rows.push({ kind: 'group', key: 'group ' + title, title, note: [g.note, counted(g.of.length, 'conversation')].filter(Boolean).join(' · ') });
    for (const c of g.of) rows.push({ kind: 'context', key: c.id, context: c });
  }
  return rows;
}

function Group({ title, note, owner }: { title: string; note: string; owner: string | undefined }) {
  return (
    <div class="grp">
      <T class="ell" s={title} /> <span class="num">{note}</span>
      {owner && <a class="inl" href={sharedLink(owner)}>Open all</a>}
      {title !== 'Live' && (
        <span class="cols" aria-hidden="true"><i class="br">branches</i><i class="ms">messages</i><i class="fs">lines</i><i class="up">changed</i></span>
      )}
    </div>
  );
}

/** The last part of a path. */
export const base = (path: string | undefined): string => (path ?? '').split(/[\\/]/).filter(Boolean).pop() ?? '';

function LiveRow({ l }: { l: Live }) {
  const step = l.call ?? l.failed;
  return (
    <a class="liverow" href={link(['c', l.context])} tabIndex={-1}>
      <span class="st"><span class={l.state === 'works' ? 'dot live' : 'dot wait'} title={stateText[l.state]} /></span>
      <Badge tool={l.labels?.['tool']} />
      <span class="two">
        <T class="ell strong" s={l.title || 'Untitled'} />
        <span class="s t3 ell"><T s={[base(l.labels?.['project']), l.branch].filter(Boolean).join(' · ')} /></span>
      </span>
      <span class="now">
        <Icon name={step?.tool ?? 'other'} />
        <span class="two">
          <T class={step ? 'ell mono' : 'ell'} s={step?.summary ?? l.newest} />
          <span class={l.failed ? 's del ell' : 's t3 ell'}>
            {l.failed ? `failed at ${timeOf(l.at)}, nothing since` : l.call ? (l.state === 'silent' ? `no result since ${timeOf(l.call.at)}` : `called ${ago(l.call.at, now.value)} ago, no result yet`)
              : l.state === 'waits' ? `answered at ${timeOf(l.at)}, waits for a prompt` : ''}
          </span>
        </span>
      </span>
      <span class="r num">{ago(l.at, now.value)}</span>
    </a>
  );
}

function ContextRow({ c, group, owner }: { c: Context; group: string; owner: string | undefined }) {
  const o = c.outline;
  return (
    <a class="row" href={owner ? sharedLink(owner, c.id) : link(['c', c.id])} tabIndex={-1}>
      <span class="st">{c.problem && <span class="warn" title={c.problem.slice(0, 300)}><Icon name="warning" /></span>}</span>
      <Badge tool={c.tool} />
      <span class="ti">
        <b class="ell"><T s={c.title || 'Untitled'} /></b>
        <T class="ell t3" s={o?.answer} />
      </span>
      <T class="ell t2 s pr" s={owner ? `${owner} · ${base(c.labels?.['project'])}` : group === 'project' ? '' : base(c.labels?.['project'])} />
      <span class="r num br">{c.branches > 1 ? count(c.branches) : ''}</span>
      <span class="r num ms">{count(c.messages)}</span>
      <span class="r num fs">
        {o && o.added > 0 && <span class="add">+{count(o.added)}</span>} {o && o.removed > 0 && <span class="del">−{count(o.removed)}</span>}
      </span>
      <span class="r num up">{group === 'day' ? timeOf(c.updated_at) : c.updated_at ? dayOf(new Date(c.updated_at))[1] || dayOf(new Date(c.updated_at))[0] : ''}</span>
    </a>
  );
}
