import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get } from './api';
import { FileHistory } from './filehistory';
import { Icon } from './icons';
import { changed, go, link, query } from './route';
import { Switch } from './shell';
import { count, counted, dateOf, dayOf, Path, size, T, timeOf } from './text';

export interface FileRow {
  path: string;
  access: 'attached' | 'read' | 'written';
  type: string;
  size: number | null;
  created_at: string;
  context: string;
  branches: string[];
  position: number;
  id: string;
  role: string;
}

interface PathCount {
  path: string;
  times: number;
  contexts: number;
  last_at: string;
}

export interface FileList {
  files: FileRow[];
  next?: string;
  behind: number;
}

const most = 300; // rows

/** What is looked for: a pattern, or else a part of the path. */
const pattern = (path: string): string => (!path || /[*?[]/.test(path) ? path : `*${path}*`);

/** Files that agents read, changed or attached, over all contexts. */
export function Files(_: { parts: string[] }) {
  const q = query.value;
  const path = q.get('path') ?? '';
  const access = q.get('access') ?? 'written';
  const file = q.get('file') ?? '';
  const order = q.get('order') ?? 'newest';
  const found = useSignal<{ files?: FileRow[]; paths?: PathCount[] }>({});
  const failed = useSignal('');
  useEffect(() => {
    const abort = new AbortController();
    if (order === 'most' ? found.value.files : found.value.paths) found.value = {};
    const timer = setTimeout(() => {
      const asked = { path: pattern(path), access: access === 'all' ? '' : access, project: q.get('project') ?? '', limit: most };
      const url = order === 'most' ? '/files/paths' : '/files';
      get<{ files?: FileRow[]; paths?: PathCount[] }>(url, asked, abort.signal).then((got) => {
        found.value = got;
        failed.value = '';
      }, (e: unknown) => {
        if (!abort.signal.aborted) failed.value = e instanceof Error ? e.message : String(e);
      });
    }, 120);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, access, order, q.get('project')]);
  const { files, paths } = found.value;
  const loading = order === 'most' ? !paths : !files;
  const days = new Map<string, FileRow[]>();
  for (const f of files ?? []) {
    const [title] = dayOf(new Date(f.created_at));
    days.set(title, [...(days.get(title) ?? []), f]);
  }
  return (
    <div class="col">
      <header class="bar">
        <label class="field">
          <Icon name="search" />
          <span class="vh">Path</span>
          <input type="search" value={path} spellcheck={false} placeholder="Part of a path, or a pattern such as *.go" onInput={(e) => go(changed({ path: e.currentTarget.value }), true)} />
        </label>
        <span class="seg" role="group" aria-label="How">
          <Switch name="access" value="written" now={access}>Changed</Switch>
          <Switch name="access" value="read" now={access}>Read</Switch>
          <Switch name="access" value="attached" now={access}>Attached</Switch>
          <Switch name="access" value="all" now={access}>All</Switch>
        </span>
        <span class="seg" role="group" aria-label="Order">
          <Switch name="order" value="newest" now={order}>Newest</Switch>
          <Switch name="order" value="most" now={order}>Most touched</Switch>
        </span>
      </header>
      {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
      <div class={file ? 'halves opened' : 'halves'}>
        <div class="scroll" tabIndex={0} aria-label="Files">
          {loading && !failed.value && <p class="t3 pad" role="status">Looking through all conversations…</p>}
          {(files ?? paths)?.length === 0 && <div class="empty"><p>No agent has done this to a file like that</p></div>}
          {[...days].map(([title, files]) => (
            <section key={title}>
              <h2 class="grp">{title} <span>{counted(files.length, 'file')}</span></h2>
              {files.map((f) => (
                <a key={f.id + f.path + f.position} class="filerow" aria-current={f.path && f.path === file ? 'true' : undefined}
                  href={f.path ? changed({ file: f.path }) : link(['c', f.context], { b: f.branches[0], m: f.id })}>
                  <Icon name={f.access === 'written' ? 'edit' : f.access === 'read' ? 'read' : 'clip'} />
                  <Path s={f.path || f.type || 'an attachment'} />
                  <span class="r num">{f.size != null && f.access !== 'read' ? size(f.size) : ''}</span>
                  <span class="r num">{timeOf(f.created_at)}</span>
                </a>
              ))}
            </section>
          ))}
          {paths && paths.length > 0 && (
            <table class="paths">
              <thead><tr><th>File</th><th class="r">Times</th><th class="r">Conversations</th><th class="r">Last</th></tr></thead>
              <tbody>
                {paths.map((p) => (
                  <tr key={p.path} class={p.path === file ? 'on' : undefined}>
                    <td><a href={changed({ file: p.path })} aria-current={p.path === file ? 'true' : undefined}><Path s={p.path} /></a></td>
                    <td class="r num">{count(p.times)}</td>
                    <td class="r num">{count(p.contexts)}</td>
                    <td class="r num">{dateOf(new Date(p.last_at))}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {(files ?? paths)?.length === most && <p class="t3 s pad">Only the first {most} are listed. A part of the path finds others.</p>}
          {!loading && <p class="t3 s pad">Shell commands that name a path are not listed.</p>}
        </div>
        {file && <FileHistory file={file} access={access} />}
      </div>
    </div>
  );
}
