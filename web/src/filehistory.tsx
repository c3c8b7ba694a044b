// What was done to one file, over all conversations: the newest first, each in the turn that did it.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, segment, type Context, type Messages, type Part, type Turn } from './api';
import { changesOf, Diff } from './diff';
import type { FileList, FileRow } from './files';
import { Icon } from './icons';
import { changed, link } from './route';
import { count, dayOf, T, timeOf } from './text';

const most = 200; // messages that are asked for
const described = 40; // that say at once what they did
const opened = 3; // that are open at first

/** A path as a pattern that fits nothing else. */
const exactly = (path: string): string => path.replace(/[*?[]/g, '[$&]');

export function FileHistory({ file, access }: { file: string; access: string }) {
  const rows = useSignal<FileRow[] | undefined>(undefined);
  const more = useSignal(false);
  const failed = useSignal('');
  useEffect(() => {
    const abort = new AbortController();
    rows.value = undefined;
    get<FileList>('/files', { path: exactly(file), access: access === 'all' ? '' : access, all: true, limit: most }, abort.signal).then((got) => {
      const all = got.files.filter((f) => f.path === file);
      const calls = all.filter((f) => f.role !== 'tool'); // the answer to a call says nothing new
      rows.value = calls.length ? calls : all;
      more.value = got.files.length === most;
      failed.value = '';
    }, (e: unknown) => {
      if (!abort.signal.aborted) failed.value = e instanceof Error ? e.message : String(e);
    });
    return () => abort.abort();
  }, [file, access]);
  let day = '';
  return (
    <div class="scroll preview history" tabIndex={0} role="region" aria-label="What was done to the file" aria-busy={!rows.value && !failed.value}>
      <h2><a class="ghost back" href={changed({ file: '' })} aria-label="All files"><Icon name="back" /></a><T class="mono" s={file} /></h2>
      {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
      {rows.value?.map((f, i) => {
        const title = dayOf(new Date(f.created_at)).join(' ');
        const first = title !== day;
        day = title;
        return <div key={f.id + f.position + i}>{first && <h3>{title}</h3>}<Touch f={f} first={i < described} open={i < opened} /></div>;
      })}
      {more.value && <p class="t3 s">Older ones are not shown.</p>}
    </div>
  );
}

interface Done {
  context: Context;
  turn: Turn | undefined;
  calls: Part[];
}

const sum = (calls: Part[] | undefined, of: (p: Part) => number | undefined): number => (calls ?? []).reduce((n, p) => n + (of(p) ?? 0), 0);

/** The prompt that led to it. */
const promptOf = (d: Done): string => d.turn?.prompt || d.context.title || 'Untitled';

/** One time that a message touched the file. */
function Touch({ f, first, open: byItself }: { f: FileRow; first: boolean; open: boolean }) {
  const open = useSignal(byItself);
  const known = first || open.value;
  const done = useSignal<Done | undefined>(undefined);
  const failed = useSignal('');
  const branch = f.branches[0] ?? '';
  useEffect(() => {
    if (!known || done.value) return;
    const abort = new AbortController();
    const load = async () => {
      const context = `/contexts/${segment(f.context)}`;
      const [c, got] = await Promise.all([
        get<Context>(context, {}, abort.signal),
        get<Messages>(`${context}/branches/${segment(branch)}/parts`, { around: f.id, turns: true }, abort.signal),
      ]);
      const parts = got.messages.find((m) => m.id === f.id)?.parts ?? [];
      done.value = { context: c, turn: got.turns?.[0], calls: parts.filter((p) => p.kind === 'call') };
    };
    load().catch((e: unknown) => { if (!abort.signal.aborted) failed.value = e instanceof Error ? e.message : String(e); });
    return () => abort.abort();
  }, [known]);
  const d = done.value;
  const changes = (d?.calls ?? []).flatMap((p) => changesOf(p.text)).filter((c) => c.path === f.path || f.path.endsWith('/' + c.path));
  const lines = [sum(d?.calls, (p) => p.added), sum(d?.calls, (p) => p.removed)];
  const to = link(['c', f.context], { b: branch, m: f.id });
  return (
    <section class="touch">
      <button class="sh" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>
        <Icon name={f.access === 'written' ? 'edit' : f.access === 'read' ? 'read' : 'clip'} />
        <span class="num">{timeOf(f.created_at)}</span>
        {d && <T class="ell" s={promptOf(d)} />}
        <span class="m num">
          {lines.some((n) => n > 0) && <span><span class="add">+{count(lines[0] ?? 0)}</span> <span class="del">−{count(lines[1] ?? 0)}</span></span>}
          <Icon name="chevron" class="chev" />
        </span>
      </button>
      {open.value && failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
      {open.value && d && (
        <>
          <a class="why" href={to}>
            <T s={d.context.title || 'Untitled'} />{d.context.branches > 1 && <> · <T s={branch} /></>}
            {d.turn && d.turn.number > 0 ? <> · Turn {d.turn.number} <T s={d.turn.prompt} /></> : ' · before the first prompt'}
          </a>
          {changes.map((c, i) => <Diff key={i} change={c} />)}
        </>
      )}
    </section>
  );
}
