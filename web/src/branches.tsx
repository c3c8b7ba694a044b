import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { get, segment, type Branch, type Context } from './api';
import { Actions } from './branchactions';
import { details, detailKey, forget, load, want } from './branchdata';
import { BranchTree } from './branchtree';
import { ContextBar } from './contextbar';
import { compared, Inspector, type Act, type Doing } from './inspector';
import { useKeys } from './keys';
import { listen, live } from './live';
import { changed, go, link, query } from './route';
import { Switch } from './shell';
import { count, T, useTitle } from './text';
import { writable } from './store';
import { keyOf, newest, positions, rowsOf, type Forest, type Node, type Span } from './tree';

const mostTimes = 150; // branches of which the page asks the server for their times

interface Data {
  context: Context;
  branches: Branch[];
  all: Forest;
}

/** The branches of a context: a tree on the scale of the positions of messages. */
export function Branches({ parts }: { parts: string[] }) {
  const id = parts[1] ?? '';
  const data = useSignal<Data | undefined>(undefined);
  const failed = useSignal('');
  useTitle(data.value?.context.title);
  const load_ = async () => {
    try {
      const [context, got] = await Promise.all([get<Context>('/contexts/' + segment(id)), load(id)]);
      data.value = { context, ...got };
      failed.value = '';
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
    }
  };
  useEffect(() => {
    void load_();
    return forget;
  }, [id]);
  useSignalEffect(() => {
    let timer = 0;
    const stop = listen((e) => {
      if (e.context !== id && e.record !== 'resync') return;
      timer ||= window.setTimeout(() => {
        timer = 0;
        void load_();
      }, 500);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  });
  if (failed.value && !data.value) {
    return <div class="empty" role="alert"><T s={failed.value} /><button class="btn" onClick={() => void load_()}>Try again</button></div>;
  }
  if (!data.value) return <div class="empty" aria-busy="true" />;
  return <Screen key={id} d={data.value} reload={load_} />;
}

function Screen({ d, reload }: { d: Data; reload: () => Promise<void> }) {
  const id = d.context.id;
  const active = d.branches.find((b) => b.active);
  const named = query.value.get('b') ?? active?.name ?? '';
  const marked = useSignal(''); // the key of a row that is no branch
  const toggled = useSignal<ReadonlySet<string>>(new Set());
  const zoomed = useSignal<[number, number] | undefined>(undefined);
  const sheet = useSignal(false);
  const form = useSignal<Act | undefined>(undefined);
  const some = d.branches.length <= mostTimes;
  const time = some && query.value.get('scale') === 'time';
  const flat = some && query.value.get('order') === 'newest';

  const nodes = useMemo(() => {
    const out = new Map<string, Node>();
    const all = [...d.all.roots, ...d.all.trash];
    for (let n = all.pop(); n; n = all.pop()) {
      out.set(n.key, n);
      for (const c of n.children) all.push(c);
    }
    return out;
  }, [d.all]);
  const selected = nodes.get(marked.value) ?? nodes.get(keyOf(named)) ?? nodes.get(keyOf(active?.name ?? '')) ?? d.all.roots[0];
  useEffect(() => {
    if (time || flat) for (const n of nodes.values()) want(id, n);
  }, [time, flat, nodes]);
  // Who comes by a link sees the branch, also if it is folded.
  useEffect(() => {
    for (let n = selected?.parent; n; n = n.parent) if (n.kind === 'folded') toggled.value = new Set(toggled.value).add(n.key);
  }, [id]);

  const known = time || flat ? details.value : undefined;
  const times: Span = (n) => {
    const got = n.branch && known?.get(detailKey(id, n));
    return got?.last ? [Date.parse(got.began ?? got.last), Date.parse(got.last)] : undefined;
  };
  const span = useMemo<Span>(() => (time ? times : positions), [time, known]);
  const rows = useMemo(
    () => (flat ? newest(d.all, times) : rowsOf(d.all, (n) => (n.kind === 'folded') === toggled.value.has(n.key), span)),
    [d.all, flat, toggled.value, span, flat && known],
  );
  const whole = useMemo<[number, number]>(() => {
    let [from, to] = time ? [Infinity, -Infinity] : [0, 1];
    for (const n of nodes.values()) {
      const at = span(n);
      if (!at) continue;
      from = Math.min(from, at[0]);
      to = Math.max(to, at[1]);
    }
    return Number.isFinite(from) && Number.isFinite(to) ? [from, to] : [0, 1];
  }, [nodes, span]);
  const range = zoomed.value ?? whole;
  useEffect(() => {
    zoomed.value = undefined;
  }, [time]);

  const choose = (n: Node) => {
    marked.value = n.branch ? '' : n.key;
    form.value = undefined;
    for (let p = n.parent; p; p = p.parent) {
      const shut = (p.kind === 'folded') !== toggled.value.has(p.key);
      if (shut) toggle(p, true);
    }
    if (n.branch) go(changed({ b: n.name }), true);
  };
  const toggle = (n: Node, open: boolean) => {
    const next = new Set(toggled.value);
    if ((n.kind === 'folded') === open) next.add(n.key);
    else next.delete(n.key);
    toggled.value = next;
  };
  const acts = new Actions(id, async (name) => {
    if (name !== undefined) {
      marked.value = '';
      go(changed({ b: name }), true);
    }
    await reload();
  });
  const doing: Doing = {
    active, readOnly: !writable.value, form: form.value,
    show: (f) => {
      form.value = f;
      if (f) sheet.value = true;
    },
    makeActive: (b) => acts.makeActive(b, active?.name),
    rename: (b, name) => acts.rename(b, name),
    fork: (b, name, at) => acts.fork(b, name, at),
    rewind: (b, to) => acts.rewind(b, to),
    remove: (b) => acts.remove(b),
    restore: (n) => acts.restore(n),
  };
  const enter = (n: Node) => {
    if (n.branch) go(link(['c', id], { b: n.branch.name }));
    else if (n.kind === 'folded') toggle(n, !rows.find((r) => r.node === n)?.open);
  };
  const b = selected?.branch;
  const changes = b && writable.value ? b : undefined;
  useKeys('This branch', [
    ...(b ? [
      { keys: 'c', title: 'Compare with the active branch', run: () => go(link(['c', id, 'compare'], compared(b, active?.name, selected))) },
    ] : []),
    ...(changes ? [
      { keys: 'f', title: 'Fork from a turn', run: () => doing.show('fork') },
      { keys: 'r', title: 'Rename', run: () => doing.show('rename') },
    ] : []),
    ...(changes && !changes.active ? [
      { keys: 'm', title: 'Make active', run: () => void doing.makeActive(changes).catch(() => undefined) },
    ] : []),
    { keys: 't', title: 'Facts beside the tree', run: () => { sheet.value = !sheet.value; } },
    { keys: 'Escape', title: 'Back', run: () => {
      if (form.value) form.value = undefined;
      else if (sheet.value) sheet.value = false;
      else go(link(['c', id], { b: b?.name }));
    } },
  ]);
  const l = live.value.find((x) => x.context === id);
  const gone = [...nodes.values()].filter((n) => n.kind === 'removed').length;
  const shown = d.branches.reduce((sum, b) => sum + b.messages, 0);
  return (
    <>
      <ContextBar c={d.context} branch={selected?.branch?.name ?? active?.name ?? ''} here="branches" l={l} />
      <div class="facts">
        <span><b class="num">{count(d.branches.length)}</b> {d.branches.length === 1 ? 'branch' : 'branches'}</span>
        <span title="Each message is stored once, and shown by one branch or more">
          <b class="num">{count(d.context.messages)}</b> messages stored, <b class="num">{count(shown)}</b> shown
        </span>
        {gone > 0 && <span class="no-phone"><b class="num">{count(gone)}</b> in the trash</span>}
        <span class="sp" />
        {zoomed.value && <button class="link" onClick={() => { zoomed.value = undefined; }}>Whole scale</button>}
        {some && d.branches.length > 1 && (
          <span class="no-phone">
            Scale
            <span class="seg" role="group" aria-label="Scale">
              <Switch name="scale" value="" now={time ? 'time' : ''}>Position</Switch>
              <Switch name="scale" value="time" now={time ? 'time' : ''}>Time</Switch>
            </span>
            <span class="seg" role="group" aria-label="Order">
              <Switch name="order" value="" now={flat ? 'newest' : ''}>Tree</Switch>
              <Switch name="order" value="newest" now={flat ? 'newest' : ''}>Newest</Switch>
            </span>
          </span>
        )}
      </div>
      <div class="bwrap">
        <BranchTree context={id} rows={rows} span={span} time={time} flat={flat} range={range} zoom={(to) => { zoomed.value = to; }}
          selected={selected?.key ?? ''} live={l?.state === 'works' ? l.branch : undefined} toggle={toggle} enter={enter}
          select={(n, byPointer) => {
            choose(n);
            if (byPointer) sheet.value = true;
          }} />
        {selected && (
          <Inspector context={id} n={selected} doing={doing} select={choose} open={sheet.value} close={() => { sheet.value = false; }} />
        )}
      </div>
    </>
  );
}
