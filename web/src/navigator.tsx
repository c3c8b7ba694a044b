import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, type Turn, type Turns } from './api';
import { base } from './library';
import { changed, go, query } from './route';
import { Switch } from './shell';
import { count, counted, T, timeOf } from './text';

interface Props {
  path: string;
  context: string;
  branch: string;
  turns: number;
  reading: number;
  jump: (t: Turn) => void;
}

/** The turns of a branch, and the files that it changed. */
export function Navigator(p: Props) {
  const tab = query.value.get('nav') === 'files' ? 'files' : '';
  return (
    <div class="nlist">
      <div class="ntabs" role="group" aria-label="Show">
        <Switch name="nav" value="" now={tab}>Turns</Switch>
        <Switch name="nav" value="files" now={tab}>Files</Switch>
      </div>
      {tab ? <FileTab {...p} /> : <TurnTab {...p} />}
    </div>
  );
}

/** Turns, with a filter on their prompts: all turns, not the loaded ones. */
function TurnTab({ path, turns: all, reading, jump }: Props) {
  const turns = useSignal<Turn[]>([]);
  const filter = useSignal('');
  const list = useRef<HTMLOListElement>(null);
  const inside = useRef(false);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const from = turns.value[0]?.from ?? 0;
      const to = turns.value[turns.value.length - 1]?.to ?? 0;
      const ask = filter.value ? get<Turns>(path + '/turns', { q: filter.value, limit: 100 }, abort.signal)
        : reading >= from && reading < to && turns.value.length > 1 ? get<Turns>(path + '/turns', { from: turns.value[0]?.number ?? 0, limit: 80 }, abort.signal)
        : around(path, reading, abort.signal);
      ask.then((got) => { turns.value = got.turns; }, () => undefined);
    }, filter.value ? 120 : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, filter.value, Math.floor(reading / 20), all]);
  const current = turns.value.find((t) => reading >= t.from && reading < t.to);
  useEffect(() => {
    if (!inside.current) list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [current?.number, turns.value]);
  return (
    <>
      <label class="nfil">
        <span class="vh">Filter prompts</span>
        <input type="search" placeholder="Filter prompts" value={filter.value} onInput={(e) => { filter.value = e.currentTarget.value; turns.value = []; }} />
      </label>
      <ol class="scroll" ref={list} onPointerEnter={() => { inside.current = true; }} onPointerLeave={() => { inside.current = false; }}>
        {turns.value.map((t) => (
          <li key={t.number}>
            <button class="nt" aria-current={t === current ? 'true' : undefined} onClick={() => jump(t)}>
              <span class="no num">{t.number || ''}</span>
              <T class="p" s={t.prompt || (t.number ? 'A prompt without text' : 'Before the first prompt')} />
              <span class="mm num">
                <span>{timeOf(t.at)}</span>
                {t.added + t.removed > 0 && <span><span class="add">+{count(t.added)}</span> <span class="del">−{count(t.removed)}</span></span>}
                {t.failed > 0 && <span class="del">{count(t.failed)} failed</span>}
                {t.breaks > 0 && <span>compacted</span>}
              </span>
            </button>
          </li>
        ))}
        {filter.value && turns.value.length === 0 && <li class="t3 s pad">No prompt begins with these words</li>}
      </ol>
      <p class="t3 s pad num">{counted(all, 'turn')}</p>
    </>
  );
}

async function around(path: string, position: number, abort: AbortSignal): Promise<Turns> {
  const here = await get<Turns>(path + '/turns', { at: position, limit: 1 }, abort);
  const number = here.turns[0]?.number ?? 0;
  return get<Turns>(path + '/turns', { from: Math.max(0, number - 30), limit: 80 }, abort);
}

interface Touched {
  path: string;
  position: number;
  id: string;
  created_at: string;
}

/** Files that this branch changed, by folder, each with its newest change. */
function FileTab({ context, branch, turns }: Props) {
  const files = useSignal<Touched[] | undefined>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    get<{ files: Touched[] }>('/files', { context, branch, access: 'written', limit: 500 }, abort.signal).then((got) => { files.value = got.files; }, () => undefined);
    return () => abort.abort();
  }, [context, branch, turns]);
  const folders = new Map<string, Touched[]>();
  for (const f of files.value ?? []) {
    const folder = f.path.slice(0, Math.max(0, f.path.length - base(f.path).length - 1));
    folders.set(folder, [...(folders.get(folder) ?? []), f]);
  }
  return (
    <div class="scroll" tabIndex={0} aria-label="Changed files">
      {files.value?.length === 0 && <p class="t3 s pad">No file was changed here</p>}
      {[...folders].sort(([a], [b]) => a.localeCompare(b)).map(([folder, all]) => (
        <section key={folder}>
          <h3 class="folder" title={folder.slice(0, 500)}><T class="ell" s={folder.split(/[\\/]/).slice(-3).join('/') || '.'} /></h3>
          {all.map((f) => (
            <button key={f.id + f.path} class="nfile" onClick={() => go(changed({ m: f.id, p: '', not: '' }))}>
              <T class="mono ell" s={base(f.path)} />
              <span class="t3 num">{timeOf(f.created_at)}</span>
            </button>
          ))}
        </section>
      ))}
    </div>
  );
}
