// The branches of a context as a tree, in rows and on a scale. Everything here is a pure function.
import type { Branch } from './api';

/** A line in the trash: a removed branch, or the end of a rewound one. */
export interface Removed {
  item: string;
  name: string;
  rewound: boolean;
  first: number; // the messages that no branch shows
  end: number;
  from: string; // the branch that shares the most messages with it
  shared: number;
  at: string;
  expires: string;
}

export interface Node {
  key: string;
  kind: 'branch' | 'removed' | 'folded';
  name: string;
  branch?: Branch;
  removed?: Removed;
  parent?: Node;
  children: Node[];
  from: number; // where it leaves its parent, in messages
  to: number;
  own: number;
  colour: string;
}

export interface Forest {
  roots: Node[];
  trash: Node[]; // removed branches of which nothing descends
}

export const keyOf = (branch: string): string => 'b ' + branch;

/** Puts branches, and what a rewind cut off, together as trees. Each branch is there once, also if names lie. */
export function forest(branches: Branch[], removed: Removed[]): Forest {
  const nodes = new Map<string, Node>();
  let next = 0;
  for (const b of branches) {
    const turn = b.from === undefined ? 'r8' : 'r' + (2 + (next++ % 6));
    const from = b.from === undefined ? 0 : b.shared ?? 0;
    nodes.set(b.name, {
      key: keyOf(b.name), kind: 'branch', name: b.name, branch: b, children: [], from, to: b.messages, own: b.messages - from,
      colour: b.active ? 'r1' : turn,
    });
  }
  const earlier = new Set<Node>();
  for (const n of nodes.values()) {
    const p = nodes.get(n.branch?.from ?? '');
    if (p && earlier.has(p)) attach(n, p);
    earlier.add(n);
  }
  const trash: Node[] = [];
  for (const r of removed) {
    if (r.end <= r.first) continue;
    const g: Node = {
      key: 't ' + r.item, kind: 'removed', name: r.name, removed: r, children: [], from: r.first, to: r.end, own: r.end - r.first, colour: 'r8',
    };
    const p = r.rewound ? nodes.get(r.from) ?? nodes.get(r.name) : undefined;
    if (!p) {
      trash.push(g);
      continue;
    }
    g.from = Math.min(r.first, p.to);
    attach(g, p);
  }
  const roots = [...nodes.values()].filter((n) => !n.parent);
  for (const n of everything(roots)) climb(n);
  for (const n of everything(roots)) fold(n);
  return { roots, trash };
}

/**
 * The number of messages that two branches have in common: the fewest that a branch on the path between them in the tree
 * shares with the one that it is attached to. The list is in order of creation.
 */
export function inCommon(branches: Branch[], l: Branch, r: Branch): number {
  const order = new Map(branches.map((b, i) => [b.name, i]));
  let n = Math.min(l.messages, r.messages);
  let [i, j] = [order.get(l.name) ?? -1, order.get(r.name) ?? -1];
  while (i !== j) {
    const later = Math.max(i, j);
    const from = order.get(branches[later]?.from ?? '') ?? -1;
    if (from < 0 || from >= later) return 0;
    n = Math.min(n, branches[later]?.shared ?? 0);
    [i, j] = [Math.min(i, j), from];
  }
  return n;
}

function attach(child: Node, to: Node): void {
  child.parent = to;
  to.children.push(child);
}

function everything(roots: Node[]): Node[] {
  const all = [...roots];
  for (let i = 0; i < all.length; i++) all.push(...(all[i]?.children ?? []));
  return all;
}

/** What leaves a parent before the parent's own first message leaves the one above. */
function climb(n: Node): void {
  let p = n.parent;
  while (p?.parent && n.from < p.from) p = p.parent;
  if (!p || p === n.parent) return;
  n.parent?.children.splice(n.parent.children.indexOf(n), 1);
  n.parent = p;
  p.children.push(n);
}

const many = 50; // siblings
const short = 3; // messages of their own

/** Puts short branches of one parent under one node, if there are many. */
function fold(n: Node): void {
  const shorts = n.children.filter((c) => c.kind === 'branch' && c.own <= short && c.children.length === 0 && !c.branch?.active);
  if (shorts.length <= many) return;
  const f: Node = {
    key: 'f ' + n.key, kind: 'folded', name: '', parent: n, children: shorts, colour: 'r8', own: shorts.reduce((sum, c) => sum + c.own, 0),
    from: shorts.reduce((least, c) => Math.min(least, c.from), Infinity), to: shorts.reduce((most, c) => Math.max(most, c.from), 0),
  };
  for (const c of shorts) c.parent = f;
  const gone = new Set(shorts);
  n.children = [...n.children.filter((c) => !gone.has(c)), f];
}

/** Where a node begins and ends on the scale; undefined if that is not known. */
export type Span = (n: Node) => [number, number] | undefined;

export const positions: Span = (n) => [n.from, n.to];

export interface Row {
  key: string;
  kind: 'node' | 'group';
  node?: Node;
  depth: number;
  up: number; // the row of the parent, -1 without
  open: boolean;
  set: [number, number]; // its place among its siblings, and their number
  top: number;
  height: number;
}

export const rowHeight = 56;
export const groupHeight = 37;

/**
 * The rows of a tree. A child stands below its parent; siblings are in descending order of the place where they leave
 * it. What stands between a parent and a child then begins to the right of the child's connector, which crosses no rail.
 */
export function rowsOf(f: Forest, isOpen: (n: Node) => boolean, span: Span = positions): Row[] {
  const out: Row[] = [];
  let top = 0;
  const order = (all: Node[]) =>
    all.map((n, i) => ({ n, i, x: span(n)?.[0] ?? -Infinity })).sort((a, b) => b.x - a.x || a.i - b.i).map((o) => o.n);
  const put = (first: Node[]) => {
    const stack = first.map((node, i) => ({ node, depth: 0, up: -1, set: [i + 1, first.length] as [number, number] })).reverse();
    for (let s = stack.pop(); s; s = stack.pop()) {
      const open = s.node.children.length > 0 && isOpen(s.node);
      const row = out.length;
      out.push({ key: s.node.key, kind: 'node', node: s.node, depth: s.depth, up: s.up, open, set: s.set, top, height: rowHeight });
      top += rowHeight;
      if (!open) continue;
      const all = order(s.node.children);
      for (let i = all.length - 1; i >= 0; i--) {
        const node = all[i];
        if (node) stack.push({ node, depth: s.depth + 1, up: row, set: [i + 1, all.length] });
      }
    }
  };
  put(f.roots);
  if (f.trash.length > 0) {
    out.push({ key: 'trash', kind: 'group', depth: 0, up: -1, open: true, set: [0, 0], top, height: groupHeight });
    top += groupHeight;
    put(f.trash);
  }
  return out;
}

/** The rows in order of their ends, the newest first, without connectors. */
export function newest(f: Forest, span: Span): Row[] {
  const all: Node[] = [];
  const visit = (list: Node[]) => {
    for (const n of list) {
      if (n.kind === 'branch') all.push(n);
      visit(n.children);
    }
  };
  visit(f.roots);
  const end = (n: Node) => span(n)?.[1] ?? -Infinity;
  return all.map((node, i) => ({ node, i })).sort((a, b) => end(b.node) - end(a.node) || b.i - a.i).map(({ node }, i) => (
    { key: node.key, kind: 'node', node, depth: 0, up: -1, open: false, set: [i + 1, all.length], top: i * rowHeight, height: rowHeight }
  ));
}

export interface Rail {
  key: string;
  colour: string;
  x0: number;
  x1: number;
  y: number;
  stem: boolean; // it begins with the end of a connector
  dashed: boolean;
  active: boolean;
  beyond: number; // it goes on dashed up to here
  dots: number[]; // of a folded row
}

export interface Stem {
  key: string;
  colour: string;
  x: number;
  y0: number;
  y1: number;
  dashed: boolean;
  active: boolean;
  passes: boolean; // it neither begins nor ends in view
}

export interface Fork {
  x: number;
  y: number;
  colour: string;
  count: number;
}

export interface Drawing {
  rails: Rail[];
  stems: Stem[];
  forks: Fork[];
}

const close = 8; // pixels between fork dots that are one
const corner = 10;
const crowd = 40; // connectors passing by, of which one is not told from another
const bar = 4; // pixels between lines that stand for a crowd
const least = 14; // pixels of a rail

/** What is seen of the tree between two rows: their rails, and the connectors that cross them. */
export function draw(rows: Row[], first: number, last: number, span: Span, x: (v: number) => number): Drawing {
  const out: Drawing = { rails: [], stems: [], forks: [] };
  const stems = new Map<string, Stem>();
  const forks = new Map<number, { x: number; colour: string }[]>();
  const mid = (r: Row) => r.top + r.height / 2;
  for (const [i, row] of rows.entries()) {
    const n = row.node;
    const at = n && span(n);
    if (!n || !at) continue;
    const x0 = x(at[0]);
    const parent = rows[row.up];
    const joined = parent?.node && span(parent.node) !== undefined;
    const look = { colour: n.colour, dashed: n.kind === 'removed', active: !!n.branch?.active };
    if (joined && row.up <= last && i >= first) {
      const [y0, y1] = [mid(parent), mid(row) - corner];
      // Connectors that only pass by are one for each pixel.
      const passes = row.up < first && i > last;
      const key = passes ? Math.round(x0) + n.colour : row.key;
      const before = stems.get(key);
      if (before) before.y1 = Math.max(before.y1, y1);
      else stems.set(key, { key, x: x0, y0, y1, ...look, passes });
    }
    if (joined && row.up >= first && row.up <= last) {
      const list = forks.get(row.up);
      if (list) list.push({ x: x0, colour: n.colour });
      else forks.set(row.up, [{ x: x0, colour: n.colour }]);
    }
    if (i < first || i > last) continue;
    const end = x(at[1]);
    const kids = row.open || n.kind === 'folded' ? n.children.map((c) => span(c)?.[0]).filter((v) => v !== undefined).map(x) : [];
    const beyond = n.kind === 'folded' ? 0 : kids.reduce((most, v) => Math.max(most, v), 0);
    out.rails.push({
      key: row.key, ...look, x0, x1: joined ? Math.max(end, x0 + least) : Math.max(end, x0), y: mid(row), stem: !!joined,
      beyond: beyond > end + 0.5 ? beyond : 0, dots: n.kind === 'folded' ? apart(kids) : [],
    });
  }
  out.stems = [...stems.values()];
  const passing = out.stems.filter((s) => s.passes && !s.active);
  if (passing.length > crowd) {
    const bars = new Map(passing.map((s) => [Math.round(s.x / bar), s]));
    const pale = [...bars].map(([i, s]) => ({ ...s, key: 'p' + i, x: i * bar, colour: 'pale', dashed: false }));
    out.stems = [...pale, ...out.stems.filter((s) => !s.passes || s.active)];
  }
  for (const [up, list] of forks) {
    const parent = rows[up];
    if (parent && parent.node?.kind !== 'folded') out.forks.push(...merged(list, mid(parent)));
  }
  return out;
}

function apart(all: number[]): number[] {
  return [...new Set(all.map(Math.round))];
}

/** Fork dots that would touch are one, with their number. */
export function merged(list: { x: number; colour: string }[], y: number): Fork[] {
  const out: (Fork & { from: number; to: number })[] = [];
  const half = (f: Fork) => (f.count > 1 ? close / 2 + 3.5 * String(f.count).length : close / 2);
  for (const f of list.toSorted((a, b) => a.x - b.x)) {
    let now = { x: f.x, y, colour: f.colour, count: 1, from: f.x, to: f.x };
    for (let before = out.at(-1); before && now.x - before.x < half(before) + half(now); before = out.at(-1)) {
      now = { ...before, to: now.to, count: before.count + now.count, x: (before.from + now.to) / 2 };
      out.pop();
    }
    out.push(now);
  }
  return out.map(({ x, colour, count }) => ({ x, y, colour, count }));
}

const units = [1, 2, 5];
const minute = 60_000;
const day = 1440 * minute;
const durations = [1, 2, 5, 10, 30, 60, 120, 360, 720, 1440, 2880, 7200, 14_400, 43_200, 129_600, 525_600].map((m) => m * minute);

/** The places of lines of a scale, at least so many pixels apart. */
export function ticks(from: number, to: number, width: number, time = false, gap = 46): number[] {
  const most = Math.max(1, Math.floor(width / gap));
  const range = Math.max(to - from, 1);
  let step = 1;
  if (time) step = durations.find((d) => range / d <= most) ?? Math.ceil(range / most / day / 365) * day * 365;
  else for (let i = 0; range / step > most; i++) step = (units[i % 3] ?? 1) * 10 ** Math.floor(i / 3);
  // Days begin at midnight of the place where the page is.
  const shift = time ? new Date(from).getTimezoneOffset() * minute : 0;
  const out: number[] = [];
  for (let v = Math.ceil((from - shift) / step) * step + shift; v <= to && out.length < 100; v += step) out.push(v);
  return out;
}

/** The branches of sub-agents that calls on a branch began. */
export function sidesOn(branches: Branch[], branch: string): Branch[] {
  const all = new Map(branches.map((b) => [b.name, b]));
  const shown = new Map<string, number>(); // how many messages of each ancestor
  let most = Infinity;
  for (let at: string | undefined = branch; at !== undefined && !shown.has(at); at = all.get(at)?.parent) {
    shown.set(at, most);
    most = Math.min(most, all.get(at)?.base ?? 0);
  }
  return branches.filter((b) => b.side && (b.base ?? 0) <= (shown.get(b.parent ?? '') ?? -1));
}
