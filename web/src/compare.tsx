import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { get, segment, type Branch, type Context, type Turns } from './api';
import { load, pathOf } from './branchdata';
import { Columns, type ColumnsHandle } from './columns';
import { Side } from './comparedata';
import { CompareFiles } from './comparefiles';
import { ContextBar } from './contextbar';
import { Icon } from './icons';
import { useKeys } from './keys';
import { listen, live } from './live';
import { changed, go, link, query } from './route';
import { Switch } from './shell';
import { count, counted, T, useTitle } from './text';
import { inCommon, type Forest, type Node } from './tree';

interface Data {
  context: Context;
  branches: Branch[];
  all: Forest;
}

/** Two branches of a context, from where they part. */
export function Compare({ parts }: { parts: string[] }) {
  const id = parts[1] ?? '';
  const data = useSignal<Data | undefined>(undefined);
  const failed = useSignal('');
  useTitle(data.value?.context.title);
  const fetch = () => Promise.all([get<Context>('/contexts/' + segment(id)), load(id)]).then(([context, got]) => {
    data.value = { context, ...got };
  }, (e: unknown) => {
    failed.value = e instanceof Error ? e.message : String(e);
  });
  useEffect(() => {
    void fetch();
  }, [id]);
  useSignalEffect(() => {
    let timer = 0;
    const stop = listen((e) => {
      if (e.context === id) timer ||= window.setTimeout(() => { timer = 0; void fetch(); }, 1000);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  });
  const d = data.value;
  if (failed.value && !d) return <div class="empty" role="alert"><T s={failed.value} /></div>;
  if (!d) return <div class="empty" aria-busy="true" />;
  const q = query.value;
  const active = d.branches.find((b) => b.active);
  const pick = (name: string | null) => d.branches.find((b) => b.name === name);
  const l = pick(q.get('l')) ?? (pick(q.get('r'))?.active ? undefined : active) ?? d.branches.find((b) => b.name !== q.get('r'));
  const r = pick(q.get('r')) ?? other(d, l);
  const lost = [q.get('l'), q.get('r')].find((name) => name && !pick(name));
  return (
    <>
      <ContextBar c={d.context} branch={l?.name ?? active?.name ?? ''} here="compare" l={live.value.find((x) => x.context === id)} />
      {lost && <div class="strip" role="status">There is no branch <T s={lost} />. Another one is shown in its place.</div>}
      {l && r ? <Pair key={l.name + '\n' + r.name} d={d} l={l} r={r} /> : (
        <div class="empty">
          <p>There is only one branch, so there is nothing to compare.</p>
          <a class="link" href={link(['c', id])}>Back to the conversation</a>
        </div>
      )}
    </>
  );
}

/** The branch to compare one with, if none is named: its parent, its newest child, or any. */
function other(d: Data, b: Branch | undefined): Branch | undefined {
  if (!b) return undefined;
  const named = d.branches.find((x) => x.name === b.from);
  return named ?? d.branches.findLast((x) => x.from === b.name) ?? d.branches.find((x) => x !== b);
}

/** Rails keep the colours that they have in the tree. */
function coloursOf(f: Forest, l: string, r: string): [string, string] {
  const found = new Map<string, string>();
  const all: Node[] = [...f.roots];
  for (let n = all.pop(); n; n = all.pop()) {
    if (n.branch) found.set(n.name, n.colour);
    for (const c of n.children) all.push(c);
  }
  const [a, b] = [found.get(l) ?? 'r1', found.get(r) ?? 'r3'];
  return [a, a === b ? (a === 'r3' ? 'r5' : 'r3') : b];
}

interface Parting {
  shared: number;
  turn: number; // the last one in common
  inside: boolean; // it goes on after the fork
  sides: [Side, Side];
  first: number; // the number of the first turn after the fork
}

function Pair({ d, l, r }: { d: Data; l: Branch; r: Branch }) {
  const id = d.context.id;
  const at = useSignal<Parting | undefined>(undefined);
  const failed = useSignal('');
  const tied = useSignal(true);
  const again = useSignal(0);
  const start = useRef(0);
  const columns = useRef<ColumnsHandle | undefined>(undefined);
  const tab = query.value.get('tab') === 'files' ? 'files' : '';
  const show = query.value.get('side') === 'r' ? 'r' : 'l';
  const colours = useMemo(() => coloursOf(d.all, l.name, r.name), [d.all, l.name, r.name]);
  useEffect(() => {
    let current = true;
    const begin = async () => {
      const shared = l.name === r.name ? l.messages : inCommon(d.branches, l, r);
      const sides: [Side, Side] = [new Side(id, l, shared), new Side(id, r, shared)];
      const before = shared > 0 ? get<Turns>(pathOf(id, l.name) + '/turns', { at: shared - 1, limit: 1 }) : undefined;
      const [a, b, common] = await Promise.all([sides[0].begin(), sides[1].begin(), before]);
      const last = common?.turns[0];
      const firsts = [a && sides[0].first, b && sides[1].first].filter((n) => n !== false);
      const turn = last?.number ?? 0;
      if (!current) return;
      at.value = { shared, turn, inside: firsts.includes(turn), sides, first: firsts.length > 0 ? Math.min(...firsts) : 0 };
    };
    begin().catch((e: unknown) => {
      if (current) failed.value = e instanceof Error ? e.message : String(e);
    });
    return () => {
      current = false;
    };
  }, [again.value]);
  const tie = () => {
    start.current = columns.current?.at() ?? 0;
    tied.value = !tied.value;
  };
  useKeys('Compare', [
    { keys: 'n', title: 'Next pair of turns', run: () => columns.current?.step(1) },
    { keys: 'N', title: 'Previous pair of turns', run: () => columns.current?.step(-1) },
    { keys: '=', title: 'Tie or untie scrolling', run: tie },
    { keys: 'x', title: 'Swap the sides', run: () => swap() },
    { keys: 'b', title: 'Branches', run: () => go(link(['c', id, 'branches'], { b: r.name })) },
    { keys: 'Escape', title: 'Back', run: () => go(link(['c', id], { b: l.name })) },
  ]);
  const p = at.value;
  const ends = p && p.first === 0;
  const swap = () => go(changed({ l: r.name, r: l.name }), true);
  // Nothing that is read moves: what came since is shown when somebody asks for it.
  const fresh = p ? [l, r].reduce((sum, b, n) => sum + b.messages - (p.sides[n as 0 | 1].branch.messages), 0) : 0;
  const stale = p && [l, r].some((b, n) => b.messages !== p.sides[n as 0 | 1].branch.messages);
  return (
    <>
      <div class="facts cfacts">
        <Choose d={d} side="l" now={l.name} colour={colours[0]} />
        <button class="ghost" aria-label="Swap the sides" title="Swap the sides" onClick={swap}><Icon name="swap" /></button>
        <Choose d={d} side="r" now={r.name} colour={colours[1]} />
        <span class="sp" />
        <span class="seg only-narrow" role="group" aria-label="Side">
          <Switch name="side" value="" now={show === 'r' ? 'r' : ''}>Left</Switch>
          <Switch name="side" value="r" now={show === 'r' ? 'r' : ''}>Right</Switch>
        </span>
        {!tab && (
          <label class="tie no-narrow" title="Turns of the same number stand beside each other">
            <input type="checkbox" checked={tied.value} onChange={tie} /> Scroll together
          </label>
        )}
        <span class="seg" role="group" aria-label="What">
          <Switch name="tab" value="" now={tab}>Turns</Switch>
          <Switch name="tab" value="files" now={tab}>Files</Switch>
        </span>
      </div>
      {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
      {stale && (
        <div class="strip" role="status">
          {fresh > 0 ? counted(fresh, 'new message') : 'The branches have changed'}{' '}
          <button class="link" onClick={() => { start.current = columns.current?.at() ?? 0; again.value++; }}>Compare again</button>
        </div>
      )}
      {!p && !failed.value && <div class="skeleton" aria-busy="true"><i /><i /><i /></div>}
      {p && ends && (
        <div class="empty">
          <p>
            {l.name === r.name ? 'Choose another branch to compare this one with.' : `Both have the same ${counted(p.shared, 'message')}.`}
          </p>
        </div>
      )}
      {p && !ends && (tab === 'files'
        ? <CompareFiles sides={p.sides} colours={colours} show={show} />
        : (
          <Columns key={tied.value ? 'tied' : 'untied'} sides={p.sides} colours={colours} show={show} first={p.first} tied={tied.value}
            handle={columns} start={start.current} top={<Common p={p} id={id} branch={l.name} />} />
        ))}
    </>
  );
}

function Choose({ d, side, now, colour }: { d: Data; side: 'l' | 'r'; now: string; colour: string }) {
  const box = useRef<HTMLSelectElement>(null);
  useLayoutEffect(() => {
    if (box.current) box.current.value = now;
  });
  return (
    <label class="pick">
      <span class={`rail-dot on ${colour}`} />
      <span class="vh">{side === 'l' ? 'Left' : 'Right'}</span>
      <select ref={box} value={now} onChange={(e) => go(changed({ [side]: e.currentTarget.value }), true)}>
        {d.branches.map((b) => <option key={b.name} value={b.name}>{b.name.slice(0, 60)}</option>)}
      </select>
    </label>
  );
}

/** What both have: folded, with the last prompt of it. */
function Common({ p, id, branch }: { p: Parting; id: string; branch: string }) {
  const prompt = useSignal('');
  useEffect(() => {
    if (p.shared === 0) return;
    get<Turns>(pathOf(id, branch) + '/turns', { at: p.shared - 1, limit: 1 }).then((got) => {
      prompt.value = got.turns[0]?.prompt ?? '';
    }, () => undefined);
  }, [p.shared]);
  if (p.shared === 0) return <div class="common">The branches have no message in common.</div>;
  const until = p.turn === 0 ? 'all before the first prompt' : (p.inside ? 'up to a point in turn ' : 'until turn ') + count(p.turn);
  return (
    <a class="common" href={link(['c', id], { b: branch, p: Math.max(0, p.shared - 1) })} title="Open the conversation there">
      <b class="num">{counted(p.shared, 'message')} in common, {until}</b>
      {prompt.value && <span class="t3 ell">Last: <T s={prompt.value} /></span>}
    </a>
  );
}
