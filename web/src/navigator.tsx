import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, type Branch, type BranchMap, type Turn, type Turns, type UsageRow } from './api';
import { Icon } from './icons';
import { base } from './library';
import { MarkTab } from './marks';
import { changed, go, link, query } from './route';
import { Switch } from './shell';
import type { Reading } from './talk';
import { count, counted, T, timeOf } from './text';

const page = 20; // turns; the list has those of three pages, and that of the turn which is read in the middle

interface Props {
  path: string;
  context: string;
  branch: string;
  branches: Branch[];
  map: BranchMap | undefined;
  usage: Map<string, UsageRow>;
  reading: Signal<Reading>;
  jump: (t: Turn) => void;
}

/** The turns of a branch, the files that it changed, and what stands out in it. */
export function Navigator(p: Props) {
  const tab = ['files', 'marks'].find((t) => t === query.value.get('nav')) ?? '';
  return (
    <div class="nlist">
      <div class="ntabs" role="group" aria-label="Show">
        <Switch name="nav" value="" now={tab}>Turns</Switch>
        <Switch name="nav" value="files" now={tab}>Files</Switch>
        <Switch name="nav" value="marks" now={tab}>Marks</Switch>
      </div>
      {tab === 'files' ? <FileTab {...p} /> : tab === 'marks' ? <MarkTab {...p} /> : <TurnTab {...p} />}
    </div>
  );
}

/** Turns, with a filter on their prompts: all turns, not the loaded ones. */
function TurnTab({ path, map, reading, jump }: Props) {
  const turns = useSignal<Turn[]>([]);
  const filter = useSignal('');
  const list = useRef<HTMLOListElement>(null);
  const inside = useRef(false);
  const [all, { turn }] = [map?.turns ?? 0, reading.value];
  const block = Math.floor(turn / page);
  useEffect(() => {
    if (!map || turn < 0) return; // the talk comes first
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const ask = filter.value ? { q: filter.value, limit: 100 } : { from: Math.max(0, (block - 1) * page), limit: 3 * page };
      get<Turns>(path + '/turns', ask, abort.signal).then((got) => { turns.value = got.turns; }, () => undefined);
    }, filter.value ? 120 : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, filter.value, block, all]);
  const current = turns.value.find((t) => t.number === turn);
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

interface Touched {
  path: string;
  position: number;
  id: string;
  created_at: string;
}

/** Files that this branch changed, by folder, each with its newest change. */
function FileTab({ context, branch, map }: Props) {
  const files = useSignal<Touched[] | undefined>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    get<{ files: Touched[] }>('/files', { context, branch, access: 'written', limit: 500 }, abort.signal).then((got) => { files.value = got.files; }, () => undefined);
    return () => abort.abort();
  }, [context, branch, map?.turns]);
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
            <div key={f.id + f.path} class="nrow">
              <button class="nfile" onClick={() => go(changed({ m: f.id, p: '', not: '' }))} title="Its newest change">
                <T class="mono ell" s={base(f.path)} />
                <span class="t3 num">{timeOf(f.created_at)}</span>
              </button>
              <a class="ghost" href={link(['files'], { file: f.path, path: f.path })} aria-label={'All changes of ' + base(f.path)} title="All its changes"><Icon name="list" /></a>
            </div>
          ))}
        </section>
      ))}
    </div>
  );
}
