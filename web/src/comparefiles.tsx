// The files that either of two branches changed after they part, with the changes side by side.
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { Changes, type Edit, type Side } from './comparedata';
import { Diff } from './diff';
import { Icon } from './icons';
import { link } from './route';
import { count, counted, T } from './text';

interface Props {
  sides: [Side, Side];
  colours: [string, string];
  show: 'l' | 'r';
}

interface Row {
  path: string;
  edits: [Edit[], Edit[]];
}

const mostDiffs = 20; // of a file and a side, at first

export function CompareFiles({ sides, colours, show }: Props) {
  const [l, r] = useMemo(() => [new Changes(sides[0]), new Changes(sides[1])] as const, [sides]);
  const abort = useMemo(() => new AbortController(), [sides]);
  const toggled = useSignal<ReadonlySet<string>>(new Set());
  const read = () => {
    void l.read(abort.signal);
    void r.read(abort.signal);
  };
  useEffect(() => {
    read();
    return () => abort.abort();
  }, [sides]);
  const rows: Row[] = [...new Set([...l.files.value.keys(), ...r.files.value.keys()])].map((path) => ({
    path, edits: [l.files.value.get(path) ?? [], r.files.value.get(path) ?? []],
  }));
  const both = (row: Row) => Number(row.edits[0].length > 0 && row.edits[1].length > 0);
  rows.sort((a, b) => both(b) - both(a) || (a.path < b.path ? -1 : 1));
  const left = l.left + r.left;
  const reading = l.busy.value || r.busy.value;
  const failed = l.failed.value || r.failed.value;
  const prefix = commonFolder(rows.map((row) => row.path));
  const shared = rows.filter((row) => both(row)).length;
  return (
    <div class={`scroll cfiles show-${show}`} tabIndex={0} aria-label="Changed files">
      <div class="cheads">
        {sides.map((s, n) => (
          <div key={n} class={`chead ${n === 0 ? 'cl' : 'cr'} ${colours[n]}`}>
            <span class={`rail-dot ${s.branch.active ? 'on' : ''}`} />
            <b class="ell"><T s={s.branch.name} title /></b>
          </div>
        ))}
      </div>
      {failed && <p class="gap bad pad" role="alert"><T s={failed} /></p>}
      {rows.length > 0 && (
        <p class="cprefix t3 num">
          <span>{counted(rows.length, 'file')}{shared > 0 && `, ${count(shared)} changed on both sides`}</span>
          {prefix && <T class="ell mono" s={prefix} />}
        </p>
      )}
      {rows.map((row, i) => {
        const open = (i === 0 && rows.length > 0) !== toggled.value.has(row.path);
        const toggle = () => {
          const next = new Set(toggled.value);
          if (!next.delete(row.path)) next.add(row.path);
          toggled.value = next;
        };
        return (
          <section key={row.path} class="cfile">
            <button class="cfrow" aria-expanded={open} onClick={toggle}>
              <span class="cname">
                <Icon name="chevron" class="chev" />
                <T class="ell mono" s={row.path.slice(prefix.length) || 'A file without a path'} title />
                <Count edits={row.edits[0]} n={0} />
              </span>
              <Count edits={row.edits[1]} n={1} />
            </button>
            {open && (
              <div class="cdiffs">
                {row.edits.map((edits, n) => <Diffs key={n} edits={edits} s={sides[n as 0 | 1]} n={n} colour={colours[n as 0 | 1]} />)}
              </div>
            )}
          </section>
        );
      })}
      {left === 0 && rows.length === 0 && !failed && <div class="empty"><p>No call changed a file on either side after the fork.</p></div>}
      {left > 0 && (reading
        ? <p class="pad t3 s" aria-busy="true">Reading {counted(left, 'message')}…</p>
        : <p class="pad"><button class="btn" onClick={read}>Read on: {counted(left, 'more message')}</button></p>)}
      <p class="pad t3 s">Lines are counted as they were called. Changes that shell commands make are not listed.</p>
    </div>
  );
}

function Count({ edits, n }: { edits: Edit[]; n: number }) {
  const done = edits.filter((e) => !e.failed);
  const sum = (f: (e: Edit) => number) => done.reduce((all, e) => all + f(e), 0);
  const [added, removed] = [sum((e) => e.added), sum((e) => e.removed)];
  return (
    <span class={`num ccount ${n === 0 ? 'cl' : 'cr'}`}>
      {edits.length === 0 ? <span class="t3">not changed</span> : (
        <>
          <span class="t2">{counted(done.length, 'change')}</span>
          {added > 0 && <span class="add">+{count(added)}</span>}
          {removed > 0 && <span class="del">−{count(removed)}</span>}
          {done.length < edits.length && <span class="del">{count(edits.length - done.length)} failed</span>}
        </>
      )}
    </span>
  );
}

function Diffs({ edits, s, n, colour }: { edits: Edit[]; s: Side; n: number; colour: string }) {
  const all = useSignal(false);
  const shown = all.value ? edits : edits.slice(0, mostDiffs);
  return (
    <div class={`cside ${n === 0 ? 'cl' : 'cr'} ${colour}`}>
      {edits.length === 0 && <p class="t3 s cnone"><T s={s.branch.name} /> does not change it</p>}
      {shown.map((e) => (
        <div key={e.id + e.position} class="cedit">
          <p class="s t3 num">
            <a class="inl" href={link(['c', s.context], { b: s.branch.name, m: e.id })}>#{count(e.position)}</a>
            {e.added > 0 && <span class="add">+{count(e.added)}</span>}
            {e.removed > 0 && <span class="del">−{count(e.removed)}</span>}
            {e.failed && <span class="del">failed</span>}
          </p>
          {e.changes.map((c, i) => <Diff key={i} change={c} />)}
          {e.changes.length === 0 && <p class="out t3">The change cannot be shown as a difference</p>}
        </div>
      ))}
      {shown.length < edits.length && (
        <button class="more" onClick={() => { all.value = true; }}>Show {counted(edits.length - shown.length, 'more change')}</button>
      )}
    </div>
  );
}

/** The folder that all paths have, with the slash. */
function commonFolder(paths: string[]): string {
  let out = paths[0] ?? '';
  for (const p of paths) while (!p.startsWith(out)) out = out.slice(0, out.lastIndexOf('/', out.length - 2) + 1);
  return paths.length > 1 ? out.slice(0, out.lastIndexOf('/') + 1) : '';
}
