import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, type Context, type ContextList, type Live } from './api';
import { Badge, Icon } from './icons';
import { changes, live, now } from './live';
import { Rows } from './rows';
import { changed, go, link, query } from './route';
import { stateText, Switch } from './shell';
import { ago, count, counted, dayOf, T, timeOf } from './text';

const page = 200;

interface Row {
  kind: 'group' | 'context' | 'live';
  key: string;
  title?: string;
  note?: string;
  context?: Context;
  live?: Live;
}

export function Library(_: { parts: string[] }) {
  const list = useSignal<Context[]>([]);
  const next = useSignal<string | undefined>('');
  const failed = useSignal('');
  const loading = useRef<AbortController>(undefined);
  const q = query.value;
  const group = q.get('group') ?? 'day';
  const sort = q.get('sort') ?? 'updated';

  const load = async (from: string | undefined) => {
    if (from === undefined) return;
    loading.current?.abort();
    const abort = new AbortController();
    loading.current = abort;
    try {
      const got = await get<ContextList>('/contexts', {
        limit: page, cursor: from, sort, outline: true, tool: q.get('tool') ?? '', model: q.get('model') ?? '',
        label: [q.get('project') && 'project=' + q.get('project'), q.get('label')].filter((l): l is string => !!l), since: q.get('since') ?? '',
      }, abort.signal);
      list.value = from ? [...list.value, ...got.contexts] : got.contexts;
      next.value = got.next;
      failed.value = '';
    } catch (e) {
      if (!abort.signal.aborted) failed.value = e instanceof Error ? e.message : String(e);
    }
  };
  useEffect(() => void load(''), [sort, q.get('tool'), q.get('model'), q.get('project'), q.get('label'), q.get('since')]);
  useSignalEffect(() => {
    if (changes.value > 0) void load('');
  });

  const rows = rowsOf(list.value, live.value, group);
  return (
    <>
      <header class="bar">
        <h1>Library</h1>
        <span class="t3 s num">{list.value.length > 0 && `${count(list.value.length)}${next.value ? '+' : ''} shown`}</span>
        <span class="sp" />
        <span class="seg" role="group" aria-label="Group">
          <Switch name="group" value="day" now={group}>Day</Switch>
          <Switch name="group" value="project" now={group}>Project</Switch>
          <Switch name="group" value="none" now={group}>None</Switch>
        </span>
      </header>
      <Filters />
      {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
      {list.value.length === 0 && next.value === undefined && !failed.value ? (
        <div class="empty">
          <p>The store has no conversation like this yet.</p>
          <code>ctxtool import</code>
        </div>
      ) : (
        <Rows
          rows={rows}
          label="Contexts"
          height={(r) => (r.kind === 'live' ? 53 : r.kind === 'group' ? 37 : 40)}
          onEnd={() => void load(next.value || undefined)}
          open={(r) => r.context && go(link(['c', r.context.id]))}
        >
          {(r) =>
            r.kind === 'group' ? <Group title={r.title ?? ''} note={r.note ?? ''} />
            : r.kind === 'live' && r.live ? <LiveRow l={r.live} />
            : r.context ? <ContextRow c={r.context} group={group} /> : null
          }
        </Rows>
      )}
    </>
  );
}

/** Groups contexts, those that are live first. */
function rowsOf(all: Context[], lively: Live[], group: string): Row[] {
  const rows: Row[] = [];
  if (lively.length > 0) {
    rows.push({ kind: 'group', key: 'live', title: 'Live', note: String(lively.length) });
    for (const l of lively) rows.push({ kind: 'live', key: 'live ' + l.context, live: l });
  }
  const there = new Set(lively.map((l) => l.context));
  const rest = all.filter((c) => !there.has(c.id));
  if (group === 'none') {
    rows.push({ kind: 'group', key: 'all', title: 'All contexts', note: '' });
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
    rows.push({ kind: 'group', key: 'group ' + title, title, note: [g.note, counted(g.of.length, 'context')].filter(Boolean).join(' · ') });
    for (const c of g.of) rows.push({ kind: 'context', key: c.id, context: c });
  }
  return rows;
}

function Group({ title, note }: { title: string; note: string }) {
  return (
    <div class="grp">
      <T class="ell" s={title} /> <span class="num">{note}</span>
    </div>
  );
}

/** The last part of a path. */
export const base = (path: string | undefined): string => (path ?? '').split(/[\\/]/).filter(Boolean).pop() ?? '';

function LiveRow({ l }: { l: Live }) {
  return (
    <a class="liverow" href={link(['c', l.context])} tabIndex={-1}>
      <span class="st"><span class={l.state === 'works' ? 'dot live' : 'dot wait'} title={stateText[l.state]} /></span>
      <Badge tool={l.labels?.['tool']} />
      <span class="two">
        <T class="ell strong" s={l.title || 'Untitled'} />
        <span class="s t3 ell"><T s={[base(l.labels?.['project']), l.branch].filter(Boolean).join(' · ')} /></span>
      </span>
      <span class="now">
        <Icon name={l.call?.tool ?? 'other'} />
        <span class="two">
          <T class={l.call ? 'ell mono' : 'ell'} s={l.call?.summary ?? l.newest} />
          <span class="s t3 ell">
            {l.call ? (l.state === 'silent' ? `no result since ${timeOf(l.call.at)}` : `called ${ago(l.call.at, now.value)} ago, no result yet`)
              : l.state === 'waits' ? `answered at ${timeOf(l.at)}, waits for a prompt` : ''}
          </span>
        </span>
      </span>
      <span class="r num">{ago(l.at, now.value)}</span>
    </a>
  );
}

function ContextRow({ c, group }: { c: Context; group: string }) {
  const o = c.outline;
  return (
    <a class="row" href={link(['c', c.id])} tabIndex={-1}>
      <span class="st">{c.problem && <span class="warn" title={c.problem.slice(0, 300)}><Icon name="warning" /></span>}</span>
      <Badge tool={c.tool} />
      <span class="ti">
        <b class="ell"><T s={c.title || 'Untitled'} /></b>
        <T class="ell t3" s={o?.answer} />
      </span>
      <T class="ell t2 s pr" s={group === 'project' ? '' : base(c.labels?.['project'])} />
      <span class="r num br">{c.branches > 1 ? count(c.branches) : ''}</span>
      <span class="r num ms">{count(c.messages)}</span>
      <span class="r num fs">
        {o && o.added > 0 && <span class="add">+{count(o.added)}</span>} {o && o.removed > 0 && <span class="del">−{count(o.removed)}</span>}
      </span>
      <span class="r num up">{group === 'day' ? timeOf(c.updated_at) : c.updated_at ? dayOf(new Date(c.updated_at))[1] || dayOf(new Date(c.updated_at))[0] : ''}</span>
    </a>
  );
}

function Filters() {
  const q = query.value;
  const on = ['project', 'tool', 'model', 'label', 'since'].filter((name) => q.get(name));
  if (on.length === 0) return null;
  return (
    <div class="filters" role="group" aria-label="Conditions">
      {on.map((name) => (
        <a class="fil on" href={changed({ [name]: '' })} title="Remove this condition">
          {name} <T s={q.get(name) ?? ''} /> <Icon name="close" />
        </a>
      ))}
    </div>
  );
}
