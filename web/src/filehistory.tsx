// What was done to one file, over all conversations: the newest first, each in the turn that did it.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, segment, type Context, type Messages, type Part, type Turn } from './api';
import { changesOf, Diff } from './diff';
import type { FileList, FileRow } from './files';
import { Icon } from './icons';
import { changed, link } from './route';
import { dayOf, T, timeOf } from './text';

const most = 200; // messages that are asked for
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
        return <div key={f.id + f.position + i}>{first && <h3>{title}</h3>}<Touch f={f} open={i < opened} /></div>;
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

/** One time that a message touched the file. */
function Touch({ f, open: byItself }: { f: FileRow; open: boolean }) {
  const open = useSignal(byItself);
  const done = useSignal<Done | undefined>(undefined);
  const failed = useSignal('');
  const branch = f.branches[0] ?? '';
  useEffect(() => {
    if (!open.value || done.value) return;
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
  }, [open.value]);
  const d = done.value;
  const changes = (d?.calls ?? []).flatMap((p) => changesOf(p.text)).filter((c) => c.path === f.path || f.path.endsWith('/' + c.path));
  const to = link(['c', f.context], { b: branch, m: f.id });
  return (
    <section class="touch">
      <button class="sh" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>
        <Icon name={f.access === 'written' ? 'edit' : f.access === 'read' ? 'read' : 'clip'} />
        <span class="num">{timeOf(f.created_at)}</span>
        {d && <T class="ell" s={d.context.title || 'Untitled'} />}
        {d && d.context.branches > 1 && <T class="ell t3" s={branch} />}
        <span class="m"><Icon name="chevron" class="chev" /></span>
      </button>
      {open.value && failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
      {open.value && d && (
        <>
          <a class="why" href={to}>{d.turn && d.turn.number > 0 ? <>Turn {d.turn.number} <T s={d.turn.prompt} /></> : 'Before the first prompt'}</a>
          {changes.map((c, i) => <Diff key={i} change={c} />)}
        </>
      )}
    </section>
  );
}
