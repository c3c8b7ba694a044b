// The tree of branches: rows with names, and their rails on one scale. Only what is in view is in the document.
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from '@tanstack/virtual-core';
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import { details, detailKey, want } from './branchdata';
import { Icon } from './icons';
import { useKeys } from './keys';
import { Axis, Legend, Plot } from './rails';
import { count, counted, dateOf, dayOf, T, timeOf } from './text';
import type { Node, Row, Span } from './tree';

interface Props {
  context: string;
  rows: Row[];
  span: Span;
  time: boolean;
  flat: boolean; // without a tree
  range: [number, number];
  zoom: (to: [number, number] | undefined) => void;
  selected: string;
  live: string | undefined; // the branch in which an agent works
  select: (n: Node, byPointer: boolean) => void;
  toggle: (n: Node, open: boolean) => void;
  enter: (n: Node) => void;
}

const indent = 16;
const mostLevels = 6;
const head = 34;

export function BranchTree(p: Props) {
  const scroll = useRef<HTMLDivElement>(null);
  const lane = useRef<HTMLDivElement>(null);
  const place = useSignal({ left: 0, width: 0 });
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const options = {
    count: p.rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: (i: number) => p.rows[i]?.height ?? 56,
    getItemKey: (i: number) => p.rows[i]?.key ?? i,
    overscan: 4,
    scrollMargin: head,
    scrollPaddingStart: head,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(0),
  };
  const [list] = useState(() => new Virtualizer<HTMLDivElement, Element>(options));
  list.setOptions(options);
  useLayoutEffect(() => list._didMount(), []);
  useLayoutEffect(() => {
    list._willUpdate();
    list.measure();
  }, [p.rows]);
  useLayoutEffect(() => {
    const el = lane.current;
    if (!el) return;
    const measure = () => {
      place.value = { left: el.offsetLeft, width: el.clientWidth };
    };
    const watch = new ResizeObserver(measure);
    watch.observe(el);
    measure();
    return () => watch.disconnect();
  }, []);
  const at = p.rows.findIndex((r) => r.key === p.selected);
  useLayoutEffect(() => {
    if (at >= 0) list.scrollToIndex(at, { align: 'auto' });
  }, [p.selected, at >= 0]);

  const items = list.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items[items.length - 1]?.index ?? -1;
  for (const i of items) {
    const n = p.rows[i.index]?.node;
    if (n) want(p.context, n);
  }
  const { width } = place.value;
  const x = useMemo(() => {
    const [a, b] = p.range;
    return (v: number) => 8 + ((width - 22) * (v - a)) / Math.max(b - a, 1);
  }, [width, p.range[0], p.range[1]]);

  const move = (to: number, by: number) => {
    while (p.rows[to]?.kind === 'group') to += by;
    const n = p.rows[to]?.node;
    if (n) p.select(n, false);
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.metaKey || e.ctrlKey || e.altKey) return;
    const row = p.rows[at];
    const page = Math.max(1, Math.floor((scroll.current?.clientHeight ?? 560) / 56) - 1);
    const to: Record<string, [number, number]> = {
      ArrowDown: [at + 1, 1], ArrowUp: [at - 1, -1], Home: [0, 1], End: [p.rows.length - 1, -1],
      PageDown: [Math.min(at + page, p.rows.length - 1), -1], PageUp: [Math.max(at - page, 0), 1],
    };
    const step = to[e.key];
    const n = row?.node;
    if (step) move(...step);
    else if (n && e.key === 'ArrowRight' && n.children.length > 0 && !p.flat) {
      if (row.open) move(at + 1, 1);
      else p.toggle(n, true);
    } else if (n && e.key === 'ArrowLeft') {
      if (row.open) p.toggle(n, false);
      else if (row.up >= 0) move(row.up, -1);
    } else if (n && e.key === 'Enter') p.enter(n);
    else if (n && e.key === ' ') p.select(n, true);
    else return;
    e.preventDefault();
  };
  useKeys('Branches', [
    { keys: 'j', title: 'Next branch', run: () => move(at + 1, 1) },
    { keys: 'k', title: 'Previous branch', run: () => move(at - 1, -1) },
    { keys: '0', title: 'The whole scale', run: () => p.zoom(undefined) },
  ], false);
  const end = p.rows[p.rows.length - 1];
  return (
    <div class="scroll bt" ref={scroll}>
      <div class="bhead">
        <span>Branch</span>
        <Axis place={lane} range={p.range} width={width} x={x} time={p.time} zoom={p.zoom} />
        <span class="r">Own messages</span>
        <span class="r">Last record</span>
      </div>
      <div class="tall btree" role="tree" aria-label="Branches" tabIndex={0} onKeyDown={onKeyDown}
        aria-activedescendant={at >= first && at <= last ? 'branch-' + at : undefined}
        style={{ height: (end ? end.top + end.height : 0) + 'px' }}>
        {items.map((item) => {
          const row = p.rows[item.index];
          if (!row) return null;
          if (!row.node) {
            return (
              <div key={row.key} class="at grp" role="presentation" style={{ transform: `translateY(${row.top}px)` }}>
                In the trash <span>removed branches, each until its day</span>
              </div>
            );
          }
          return <RowView key={row.key} p={p} row={row} node={row.node} index={item.index} />;
        })}
        {width > 0 && items.length > 0 && (
          <Plot rows={p.rows} first={first} last={last} span={p.span} x={x} place={place.value} live={p.live} range={p.range} time={p.time}
            context={p.context} />
        )}
      </div>
      <Legend />
    </div>
  );
}

function RowView({ p, row, node: n, index }: { p: Props; row: Row; node: Node; index: number }) {
  const on = row.key === p.selected;
  const d = details.value.get(detailKey(p.context, n));
  const depth = Math.min(row.depth, mostLevels);
  const closed = n.children.length > 0 && !row.open && !p.flat && n.kind !== 'folded';
  return (
    <div id={'branch-' + index} class={on ? 'at brow sel' : 'at brow'} role="treeitem" aria-level={row.depth + 1} aria-posinset={row.set[0]}
      aria-setsize={row.set[1]} aria-selected={on} aria-expanded={n.children.length > 0 && !p.flat ? row.open : undefined}
      style={{ transform: `translateY(${row.top}px)`, height: row.height + 'px' }}
      onClick={(e) => p.select(n, (e as MouseEvent).detail > 0)} onDblClick={() => p.enter(n)}>
      <div class="bcell" style={{ paddingLeft: depth * indent + 'px' }}>
        <div class="bname">
          {n.kind === 'folded' ? (
            <button class="bfold" tabIndex={-1} aria-label={row.open ? 'Fold' : 'Unfold'}
              onClick={(e) => { e.stopPropagation(); p.toggle(n, !row.open); }}>
              <Icon name="chevron" class={row.open ? 'open' : ''} />
            </button>
          ) : <span class={`rail-dot ${n.colour}${n.branch?.active ? ' on' : ''}`} />}
          <NameOf n={n} />
          {row.depth > mostLevels && <span class="chip" title="The level of the branch">level {row.depth + 1}</span>}
          {n.branch?.active && <span class="chip live">active</span>}
          {n.removed && <span class="chip">{n.removed.rewound ? 'rewound' : 'removed'}, until {dateOf(new Date(n.removed.expires))}</span>}
          {closed && (
            <button class="chip" tabIndex={-1} onClick={(e) => { e.stopPropagation(); p.toggle(n, true); }}>+{count(below(n))}</button>
          )}
        </div>
        <div class={n.branch && n.own > 0 && !d ? 's t3 ell bsay wait' : 's t3 ell bsay'}>{sayOf(n, d)}</div>
      </div>
      <div class="r num bown">{count(n.own)}</div>
      <div class="r num blast">{n.branch ? (p.live === n.name ? 'now' : when(d?.last)) : when(n.removed?.at)}</div>
    </div>
  );
}

export function NameOf({ n }: { n: Node }) {
  switch (n.kind) {
    case 'folded':
      return <span class="ell">{counted(n.children.length, 'short branch', 'short branches')}</span>;
    case 'removed':
    default:
      return <T class="ell" s={n.name} title />;
  }
}

function sayOf(n: Node, d: { prompt: string; answer: string } | undefined) {
  if (n.kind === 'folded') return <>{count(n.own)} messages, at most 3 each</>;
  if (n.kind === 'removed') {
    if (n.own === 0) return <>Other branches show its messages</>;
    return <>No branch shows its messages {count(n.removed?.first ?? 0)}–{count((n.removed?.end ?? 1) - 1)}</>;
  }
  if (n.own === 0) return <>No messages of its own</>;
  return <T s={d ? d.prompt || d.answer || 'No prompt of its own' : ''} />;
}

function below(n: Node): number {
  let sum = 0;
  for (const all = [...n.children]; all.length > 0; ) {
    const c = all.pop();
    if (!c) break;
    if (c.kind !== 'folded') sum++;
    for (const k of c.children) all.push(k);
  }
  return sum;
}

/** A time in few characters. */
export function when(at: string | undefined): string {
  if (!at) return '';
  const [title] = dayOf(new Date(at));
  return title === 'Today' ? timeOf(at) : title.toLowerCase() === 'yesterday' ? 'yesterday' : dateOf(new Date(at));
}
