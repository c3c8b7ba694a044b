// The layout of branches: node --test test/
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = path.join(path.dirname(fileURLToPath(import.meta.url)), '../src/tree.ts');
const built = await build({ entryPoints: [source], bundle: true, format: 'esm', write: false, logLevel: 'error' });
const { draw, forest, inCommon, keyOf, merged, newest, positions, rowsOf, sidesOn, ticks } = await import(
  'data:text/javascript;base64,' + Buffer.from(built.outputFiles[0].contents).toString('base64')
);

function random(seed) {
  return (below) => {
    seed = (seed * 48271) % 2147483647;
    return seed % below;
  };
}

/** Branches as a context may have them: forks of forks, and lines in the trash. */
function context(next, size, most = 40) {
  const branches = [{ name: 'main', messages: 500 + next(1000), bytes: 0, active: false }];
  const removed = [];
  for (let i = 1; i < size; i++) {
    const from = branches[next(Math.min(branches.length, most))];
    const shared = next(from.messages + 1);
    if (next(12) === 0) {
      const first = shared + next(800);
      const rewound = next(2) === 0;
      const shares = next(4) > 0 && { from: from.name, shared };
      removed.push({ item: 'line-' + i, name: rewound ? from.name : 'gone', rewound, first, end: first + next(200), from: '', shared: 0, ...shares, at: '', expires: '' });
    }
    branches.push({ name: 'b' + i, from: from.name, shared, messages: shared + next(300), bytes: 0, active: false });
  }
  branches[next(branches.length)].active = true;
  return [branches, removed];
}

const all = () => true;
const x = (v) => v;

for (let seed = 1; seed <= 300; seed++) {
  test(`no connector crosses a rail, seed ${seed}`, () => {
    const next = random(seed);
    const [branches, removed] = context(next, 2 + next(90));
    const f = forest(branches, removed);
    const rows = rowsOf(f, all);
    const shown = rows.filter((r) => r.node?.kind === 'branch').map((r) => r.key);
    assert.deepEqual(shown.toSorted(), branches.map((b) => keyOf(b.name)).toSorted(), 'each branch is there once');
    for (const [i, row] of rows.entries()) {
      if (row.kind === 'group') continue;
      assert.ok(row.up < i && (row.up < 0 ? row.depth === 0 : rows[row.up].depth === row.depth - 1), 'a child stands below its parent');
      if (row.up >= 0) assert.equal(rows[row.up].node, row.node.parent);
      const before = rows.slice(row.up + 1, i).filter((r) => r.up === row.up).pop();
      if (before && row.up >= 0) assert.ok(before.node.from >= row.node.from, 'siblings are in descending order');
    }
    const { rails, stems } = draw(rows, 0, rows.length - 1, positions, x);
    assert.equal(rails.length, rows.filter((r) => r.node).length);
    for (const s of stems) {
      for (const r of rails) {
        if (r.y <= s.y0 || r.y > s.y1) continue;
        assert.ok(s.x <= r.x0 || s.x >= Math.max(r.x1, r.beyond), `the connector ${s.key} crosses the rail ${r.key}`);
      }
    }
  });

  test(`a part is drawn as in the whole, seed ${seed}`, () => {
    const next = random(seed + 1000);
    const [branches, removed] = context(next, 2 + next(90));
    const rows = rowsOf(forest(branches, removed), all);
    const whole = draw(rows, 0, rows.length - 1, positions, x);
    const first = next(rows.length);
    const last = Math.min(rows.length - 1, first + next(20));
    const part = draw(rows, first, last, positions, x);
    assert.deepEqual(part.rails, whole.rails.filter((r) => rows.slice(first, last + 1).some((row) => row.key === r.key)));
    const from = rows[first].top;
    const to = rows[last].top + rows[last].height;
    const crossing = new Set(whole.stems.filter((s) => s.y0 < to && s.y1 + 10 >= from).map((s) => Math.round(s.x)));
    for (const at of crossing) assert.ok(part.stems.some((s) => Math.abs(s.x - at) <= 2.5), `a connector at ${at} is missing`);
  });
}

test('a chain of forks does not exhaust the stack', () => {
  const branches = Array.from({ length: 20_000 }, (_, i) => ({
    name: 'b' + i, ...(i && { from: 'b' + (i - 1), shared: i }), messages: i + 1, bytes: 0, active: i === 0,
  }));
  assert.equal(rowsOf(forest(branches, []), all).length, 20_000);
});

test('branches that begin with each other are all there', () => {
  const b = (name, from, shared) => ({ name, from, shared, messages: shared + 1, bytes: 0, active: false });
  const f = forest([b('a', 'b', 1), b('b', 'c', 2), b('c', 'a', 3)], []);
  assert.deepEqual(rowsOf(f, all).map((r) => r.node.name).toSorted(), ['a', 'b', 'c']);
});

test('a rewound branch keeps its forks, and shows what is lost', () => {
  const branches = [
    { name: 'main', messages: 940, bytes: 0, active: true },
    { name: 'early', from: 'main', shared: 214, messages: 300, bytes: 0, active: false },
    { name: 'late', from: 'main', shared: 930, messages: 1000, bytes: 0, active: false },
  ];
  const lost = { item: 'L', name: 'main', rewound: true, first: 980, end: 987, at: '', expires: '' };
  const names = (removed) => rowsOf(forest(branches, removed), all).map((r) => [r.node.kind, r.node.name, r.depth, r.node.from, r.node.to]);
  const [main, late, gone, early] = [
    ['branch', 'main', 0, 0, 940], ['branch', 'late', 1, 930, 1000], ['removed', 'main', 2, 980, 987], ['branch', 'early', 1, 214, 300],
  ];
  assert.deepEqual(names([{ ...lost, from: 'late', shared: 980 }]), [main, late, gone, early], 'it leaves the branch that shows what was before it');
  assert.deepEqual(names([{ ...lost, from: '', shared: 0 }])[1], ['removed', 'main', 1, 940, 987], 'else the branch that was rewound');
});

test('what two branches have in common', () => {
  const b = (name, from, shared, messages) => ({ name, ...(from && { from, shared }), messages, bytes: 0, active: false });
  const branches = [b('main', '', 0, 100), b('one', 'main', 40, 60), b('two', 'one', 50, 70), b('three', 'main', 30, 90), b('apart', '', 0, 9)];
  const of = (l, r) => inCommon(branches, branches.find((x) => x.name === l), branches.find((x) => x.name === r));
  for (const [l, r, n] of [['main', 'two', 40], ['two', 'one', 50], ['two', 'three', 30], ['main', 'main', 100], ['apart', 'two', 0]]) {
    assert.equal(of(l, r), n, `${l} and ${r}`);
    assert.equal(of(r, l), n, `${r} and ${l}`);
  }
  assert.equal(inCommon([b('x', 'y', 1, 2), b('y', 'x', 1, 2)], b('x', 'y', 1, 2), b('y', 'x', 1, 2)), 1, 'names that lie');
});

test('a rail goes on dashed to a fork beyond its end', () => {
  const branches = [
    { name: 'main', messages: 930, bytes: 0, active: true },
    { name: 'late', from: 'main', shared: 980, messages: 1000, bytes: 0, active: false },
  ];
  const [main, late] = draw(rowsOf(forest(branches, []), all), 0, 1, positions, x).rails;
  assert.deepEqual([main.x1, main.beyond, late.x0], [930, 980, 980]);
});

test('short branches fold, the active one does not', () => {
  const branches = [{ name: 'main', messages: 100, bytes: 0, active: false }];
  for (let i = 0; i < 60; i++) {
    branches.push({ name: 'try' + i, from: 'main', shared: i, messages: i + 1 + (i % 3), bytes: 0, active: i === 9 });
  }
  const closed = rowsOf(forest(branches, []), (n) => n.kind !== 'folded');
  assert.deepEqual(closed.map((r) => r.node.kind), ['branch', 'branch', 'folded']);
  assert.equal(closed[2].node.children.length, 59);
  assert.equal(closed[1].node.name, 'try9');
  assert.equal(rowsOf(forest(branches, []), all).length, 62);
});

test('dots that would touch are one', () => {
  const dots = merged([{ x: 3, colour: 'a' }, { x: 0, colour: 'b' }, { x: 30, colour: 'c' }], 5);
  assert.deepEqual(dots.map((f) => [f.x, f.count]), [[1.5, 2], [30, 1]]);
});

test('lines of a scale', () => {
  assert.deepEqual(ticks(0, 1241, 600, false, 64), [0, 200, 400, 600, 800, 1000, 1200]);
  assert.deepEqual(ticks(0, 0, 600), [0]);
  for (let n = 1; n < 1e7; n *= 3) assert.ok(ticks(0, n, 600).length <= 14);
});

test('the newest first', () => {
  const [branches] = context(random(3), 40);
  const rows = newest(forest(branches, []), positions);
  for (let i = 1; i < rows.length; i++) assert.ok(rows[i - 1].node.to >= rows[i].node.to);
});

test('sub-agents of the calls that a branch shows', () => {
  const branches = [
    { name: 'main' },
    { name: 'early', parent: 'main', base: 3, side: true },
    { name: 'late', parent: 'main', base: 9, side: true },
    { name: 'attempt', parent: 'main', base: 5 },
    { name: 'its', parent: 'attempt', base: 7, side: true },
  ];
  const on = (branch) => sidesOn(branches, branch).map((b) => b.name);
  assert.deepEqual(on('main'), ['early', 'late']);
  assert.deepEqual(on('attempt'), ['early', 'its']);
  assert.deepEqual(on('its'), ['early', 'its']);
  assert.deepEqual(on('none'), []);
  assert.deepEqual(sidesOn([{ name: 'a', parent: 'b', base: 2 }, { name: 'b', parent: 'a', base: 2 }], 'a'), []);
});
