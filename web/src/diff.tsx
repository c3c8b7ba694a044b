import { structuredPatch, diffWordsWithSpace } from 'diff';
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { counted, T, visible } from './text';

/** A change of a file by the call of a tool. */
export interface Change {
  path: string;
  before: string;
  after: string;
  patch?: string[]; // lines, if the call has a patch instead
}

const text = (v: unknown): string | undefined => (typeof v === 'string' ? v : undefined);
const first = (o: Record<string, unknown>, ...names: string[]): string | undefined => {
  for (const n of names) if (text(o[n]) !== undefined) return text(o[n]);
  return undefined;
};

/** The changes that the arguments of a call make. */
export function changesOf(args: string): Change[] {
  if (args.includes('*** Begin Patch')) return patchesOf(args);
  let o: Record<string, unknown>;
  try {
    o = JSON.parse(args) as Record<string, unknown>;
  } catch {
    return [];
  }
  if (!o || typeof o !== 'object') return [];
  const path = first(o, 'file_path', 'filePath', 'path', 'notebook_path') ?? '';
  const out: Change[] = [];
  const edits = Array.isArray(o['edits']) ? (o['edits'] as unknown[]) : [];
  for (const e of [o, ...edits]) {
    if (!e || typeof e !== 'object') continue;
    const before = first(e as Record<string, unknown>, 'old_string', 'oldString', 'oldText', 'old_str');
    const after = first(e as Record<string, unknown>, 'new_string', 'newString', 'newText', 'new_str');
    if (before !== undefined && after !== undefined) out.push({ path, before, after });
  }
  const content = first(o, 'content', 'file_text');
  if (out.length === 0 && content !== undefined && path) out.push({ path, before: '', after: content });
  return out;
}

function patchesOf(args: string): Change[] {
  let patch = args;
  try {
    const o: unknown = JSON.parse(args);
    const found = JSON.stringify(o).match(/"(\*\*\* Begin Patch(?:[^"\\]|\\.)*)"/)?.[0];
    if (found) patch = JSON.parse(found) as string;
  } catch {
    // It is a patch already.
  }
  const out: Change[] = [];
  for (const line of patch.split('\n')) {
    const file = /^\*\*\* (?:Update|Add|Delete) File: (.*)$/.exec(line)?.[1];
    if (file !== undefined) out.push({ path: file.trim(), before: '', after: '', patch: [] });
    else if (!line.startsWith('*** ')) out[out.length - 1]?.patch?.push(line);
  }
  return out;
}

interface Line {
  sign: ' ' | '+' | '-' | '@';
  text: string;
  old?: number;
  new?: number;
  words?: { text: string; changed: boolean }[];
}

const most = 5000; // lines of a side
const folded = 40;

function linesOf(c: Change): Line[] | undefined {
  if (c.patch) {
    return c.patch.map((l) => ({ sign: l.startsWith('@@') ? '@' : l.startsWith('+') ? '+' : l.startsWith('-') ? '-' : ' ', text: l.startsWith('@@') ? l : l.slice(1) }));
  }
  if (c.before.split('\n').length > most || c.after.split('\n').length > most) return undefined;
  const p = structuredPatch('', '', c.before, c.after, '', '', { context: 3, timeout: 400 });
  if (!p) return undefined;
  const out: Line[] = [];
  for (const [i, h] of p.hunks.entries()) {
    if (i > 0) out.push({ sign: '@', text: '⋯' });
    let [o, n] = [h.oldStart, h.newStart];
    for (const l of h.lines) {
      if (l.startsWith('\\')) continue;
      const sign = l[0] === '+' ? '+' : l[0] === '-' ? '-' : ' ';
      out.push({ sign, text: l.slice(1), ...(sign !== '+' && { old: o++ }), ...(sign !== '-' && { new: n++ }) });
    }
  }
  return marked(out);
}

/** Marks the words that differ, where a line takes the place of one other. */
function marked(lines: Line[]): Line[] {
  for (let i = 0; i + 1 < lines.length; i++) {
    const [a, b] = [lines[i], lines[i + 1]];
    if (a?.sign !== '-' || b?.sign !== '+' || lines[i - 1]?.sign === '-' || lines[i + 2]?.sign === '+') continue;
    if (a.text.length + b.text.length > 1000) continue;
    const words = diffWordsWithSpace(a.text, b.text);
    const kept = words.filter((w) => !w.added && !w.removed).reduce((n, w) => n + w.value.length, 0);
    if (kept * 3 < Math.max(a.text.length, b.text.length)) continue;
    a.words = words.filter((w) => !w.added).map((w) => ({ text: w.value, changed: !!w.removed }));
    b.words = words.filter((w) => !w.removed).map((w) => ({ text: w.value, changed: !!w.added }));
  }
  return lines;
}

export function Diff({ change }: { change: Change }) {
  const all = useSignal(false);
  const lines = useMemo(() => linesOf(change), [change.before, change.after, change.patch?.length]);
  if (!lines) return <p class="out t3">The change is too large to compare here</p>;
  if (lines.length === 0) return <p class="out t3">no change</p>;
  const shown = all.value || lines.length <= folded + 10 ? lines : lines.slice(0, folded);
  return (
    <div class="diff" role="region" aria-label={'Change of ' + change.path.slice(0, 200)} tabIndex={0}>
      <p class="path mono"><T s={change.path} /></p>
      <table>
        <tbody>
          {shown.map((l, i) =>
            l.sign === '@' ? <tr key={i} class="h"><td colSpan={4}>{visible(l.text.slice(0, 2000))}</td></tr> : (
              <tr key={i} class={l.sign === '+' ? 'p' : l.sign === '-' ? 'n' : ''}>
                <td class="l">{l.old}</td>
                <td class="l">{l.new}</td>
                <td class="g">{l.sign === '-' ? '−' : l.sign}</td>
                <td>{l.words ? l.words.map((w) => (w.changed ? <em>{visible(w.text)}</em> : visible(w.text))) : visible(l.text.slice(0, 2000))}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
      {shown.length < lines.length && <button class="more" onClick={() => { all.value = true; }}>Show {counted(lines.length - shown.length, 'more line')}</button>}
    </div>
  );
}
