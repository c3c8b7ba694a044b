import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { get, post, segment, stream, type Branch, type Context } from './api';
import { Icon } from './icons';
import { changed, go, link, query } from './route';
import { Switch } from './shell';
import { count, counted, size, T, visible } from './text';

interface Place {
  id?: string;
  position?: number;
  before: string;
  text: string;
  after: string;
}

interface Found {
  kinds: { kind: string; count: number; places: Place[] }[];
  missing: number;
}

const kinds: [string, string][] = [
  ['key', 'Keys and passwords'],
  ['token', 'Access tokens'],
  ['mail', 'E-mail addresses'],
  ['path', 'Home folders'],
  ['host', 'Private hosts'],
  ['base64', 'Long base64'],
];

const endings: Record<string, string> = { html: 'html', markdown: 'md', jsonl: 'jsonl' };
const shown = 64 << 10; // bytes of the file
const longest = 2000; // characters of a line
const pause = 250; // ms without a change, before it asks

const said = (e: unknown): string => (e instanceof Error ? e.message : String(e));

/** Writes a file, after a look at what it would tell. Words of one's own stay out of the address. */
export function Export({ parts }: { parts: string[] }) {
  const id = parts[1] ?? '';
  const path = '/contexts/' + segment(id);
  const context = useSignal<Context | undefined>(undefined);
  const branches = useSignal<Branch[]>([]);
  const failed = useSignal('');
  useEffect(() => {
    Promise.all([get<Context>(path), get<{ branches: Branch[] }>(path + '/branches')]).then(([c, b]) => {
      context.value = c;
      branches.value = b.branches;
    }, (e: unknown) => {
      failed.value = said(e);
    });
  }, [id]);
  if (failed.value) return <div class="empty" role="alert"><T s={failed.value} /></div>;
  const c = context.value;
  return c ? <Choice c={c} branches={branches.value} /> : <div class="empty" aria-busy="true" />;
}

function Choice({ c, branches }: { c: Context; branches: Branch[] }) {
  const path = `/contexts/${segment(c.id)}/export`;
  const q = query.value;
  const format = q.get('format') ?? 'html';
  const all = q.get('all') === '1';
  const branch = q.get('b') ?? c.active_branch;
  const kept = useSignal<string[]>([]); // kinds that are not replaced
  const words = useSignal<string[]>([]);
  const found = useSignal<Found | undefined>(undefined);
  const looking = useSignal(false);
  const saving = useSignal(false);
  const failed = useSignal('');
  const abort = useRef<AbortController>(undefined);
  const of = { format, branch: all ? '' : branch, all_branches: all, words: words.value };
  const file = { ...of, replace: kinds.map(([k]) => k).filter((k) => !kept.value.includes(k)) };
  const choice = JSON.stringify(of);
  useEffect(() => {
    const mine = new AbortController();
    looking.value = true;
    const timer = setTimeout(() => {
      post<Found>(path + '/preview', of, mine.signal).then((got) => {
        found.value = got;
        failed.value = '';
        looking.value = false;
      }, (e: unknown) => {
        if (mine.signal.aborted) return;
        failed.value = said(e);
        looking.value = false;
      });
    }, pause);
    return () => {
      clearTimeout(timer);
      mine.abort();
    };
  }, [choice]);
  useEffect(() => () => abort.current?.abort(), []);
  const save = async () => {
    const mine = new AbortController();
    abort.current = mine;
    saving.value = true;
    failed.value = '';
    try {
      // No type that a browser shows: the file is only saved.
      const blob = new Blob([await (await stream(path, file, mine.signal)).blob()], { type: 'application/octet-stream' });
      const a = document.createElement('a');
      a.href = URL.createObjectURL(blob);
      a.download = `ctxdir-${c.id.slice(0, 8)}.${endings[format] ?? 'txt'}`;
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 60_000);
    } catch (e) {
      if (!mine.signal.aborted) failed.value = said(e);
    }
    saving.value = false;
  };
  const toggle = (k: string) => {
    kept.value = kept.value.includes(k) ? kept.value.filter((x) => x !== k) : [...kept.value, k];
  };
  const of_ = (k: string) => found.value?.kinds.find((f) => f.kind === k);
  const total = found.value?.kinds.reduce((n, k) => n + k.count, 0) ?? 0;
  return (
    <div class="col">
      <header class="bar">
        <a class="ghost" href={link(['c', c.id], { b: q.get('b') ?? undefined })} aria-label="Back to the conversation"><Icon name="back" /></a>
        <h1 class="ell">Export <T s={c.title || 'Untitled'} /></h1>
        <span class="sp" />
        {saving.value
          ? <button class="btn" onClick={() => abort.current?.abort()}><span class="spin" /> Stop</button>
          : <button class="btn pri" onClick={() => void save()}>Save</button>}
      </header>
      {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
      <div class="export">
        <div class="scroll choose" tabIndex={0} aria-label="What to export">
          <div class="chosen">
            <span class="seg" role="group" aria-label="Format">
              <Switch name="format" value="html" now={format}>HTML</Switch>
              <Switch name="format" value="markdown" now={format}>Markdown</Switch>
              <Switch name="format" value="jsonl" now={format}>JSON Lines</Switch>
            </span>
            <label class="of">
              <span class="t2">Branch</span>
              <select value={all ? '*' : '=' + branch} onChange={(e) => {
                const v = e.currentTarget.value;
                go(v === '*' ? changed({ all: 1, b: '' }) : changed({ all: '', b: v.slice(1) }), true);
              }}>
                {branches.length > 1 && <option value="*">All {counted(branches.length, 'branch', 'branches')}</option>}
                {branches.map((b) => <option key={b.name} value={'=' + b.name}>{b.name.slice(0, 80)}</option>)}
              </select>
            </label>
          </div>
          <h2>Replaced</h2>
          <p class="s t2" role="status">
            {looking.value ? 'Looking through the messages…' : !found.value ? '' : total === 0 ? 'No pattern found anything.' : `${counted(total, 'place')} found. What is ticked is replaced.`}
          </p>
          <ul class={looking.value ? 'kinds dim' : 'kinds'}>
            {kinds.map(([k, name]) => (
              <Kind key={k} c={c} b={all ? undefined : branch} n={of_(k)?.count} places={of_(k)?.places ?? []}>
                <label>
                  <input type="checkbox" checked={!kept.value.includes(k)} onChange={() => toggle(k)} />
                  <span class={of_(k)?.count === 0 ? 't3' : 'strong'}>{name}</span>
                  <code class="t3">[{k}]</code>
                </label>
              </Kind>
            ))}
            <Kind c={c} b={all ? undefined : branch} n={words.value.length > 0 ? of_('word')?.count : undefined} places={of_('word')?.places ?? []}>
              <Words words={words.value} set={(w) => (words.value = w)} />
            </Kind>
          </ul>
          {(found.value?.missing ?? 0) > 0 && <p class="gap warn">{counted(found.value?.missing ?? 0, 'message')} cannot be read completely. The file says so at each.</p>}
          <p class="t2 s">Patterns find keys. They cannot know that a sentence is a secret.</p>
        </div>
        <File path={path} body={file} />
      </div>
    </div>
  );
}

function Kind({ c, b, n, places, children }: { c: Context; b: string | undefined; n: number | undefined; places: Place[]; children: ComponentChildren }) {
  return (
    <li>
      <div class="kind">{children}<span class="sp" /><span class="num t2">{n === undefined ? '' : count(n)}</span></div>
      {places.map((p, i) => (
        <div key={i} class="place s">
          <span class="mono"><bdi>{visible(p.before)}<mark>{visible(p.text)}</mark>{visible(p.after)}</bdi></span>
          {p.id ? <a class="link num" href={link(['c', c.id], { b, m: p.id })}>{count(p.position ?? 0)}</a> : <span class="t3">title</span>}
        </div>
      ))}
    </li>
  );
}

/** Words of one's own, which are in no address and are not kept. */
function Words({ words, set }: { words: string[]; set: (words: string[]) => void }) {
  const typed = useSignal('');
  return (
    <form class="words" onSubmit={(e) => {
      e.preventDefault();
      const w = typed.value.trim().slice(0, 60);
      if (w && !words.includes(w) && words.length < 100) set([...words, w]);
      typed.value = '';
    }}>
      <label class="of">
        <span class="strong">A word of your own</span>
        <input type="text" value={typed.value} maxLength={60} spellcheck={false} autocomplete="off" onInput={(e) => (typed.value = e.currentTarget.value)} />
        <button class="btn">Add</button>
      </label>
      {words.map((w) => (
        <button key={w} type="button" class="chip" aria-label={'Do not replace ' + w} onClick={() => set(words.filter((x) => x !== w))}><T s={w} /> <Icon name="close" /></button>
      ))}
    </form>
  );
}

/** The beginning of the file as it will be. */
function File({ path, body }: { path: string; body: { format: string; replace: string[]; words: string[] } }) {
  const text = useSignal<{ of: string; text: string; whole: boolean } | undefined>(undefined);
  const failed = useSignal('');
  const of = JSON.stringify(body);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      begin(path, body, abort.signal).then(([got, whole]) => {
        text.value = { of, text: got, whole };
        failed.value = '';
      }, (e: unknown) => {
        if (!abort.signal.aborted) failed.value = said(e);
      });
    }, pause);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [of]);
  const t = text.value;
  const replaced = body.words.length > 0 ? [...body.replace, 'word'] : body.replace;
  return (
    <section class="scroll outfile" tabIndex={0} aria-label="The file" aria-busy={t?.of !== of}>
      {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
      {t && (
        <>
          <p class="s t3">{t.whole ? 'The whole file' : `The first ${size(shown)} of the file`}{body.format === 'html' && ', as source and without its head'}</p>
          <pre class={t.of === of ? '' : 'dim'}>{t.text.split('\n').map((l, i) => <Line key={i} text={l} replaced={replaced} />)}</pre>
        </>
      )}
    </section>
  );
}

/** A line of the file with its replacements marked. */
function Line({ text, replaced }: { text: string; replaced: string[] }) {
  const more = text.length - longest;
  const out: ComponentChildren[] = [];
  let at = 0;
  text = text.slice(0, longest);
  for (const m of text.matchAll(/\[(\w+)\]/g)) {
    if (!replaced.includes(m[1] ?? '')) continue;
    out.push(visible(text.slice(at, m.index)), <mark>{m[0]}</mark>);
    at = m.index + m[0].length;
  }
  out.push(visible(text.slice(at)));
  return <bdi class="ln">{out}{more > 0 && <span class="t3"> {counted(more, 'more character')}</span>}{'\n'}</bdi>;
}

/** The beginning of the file, and whether that is all. The rest is not fetched. */
async function begin(path: string, body: { format: string }, abort: AbortSignal): Promise<[string, boolean]> {
  const reader = (await stream(path, body, abort)).body?.getReader();
  if (!reader) return ['', true];
  const decoder = new TextDecoder();
  let text = '';
  let head = body.format === 'html'; // what stands before the body is styles
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return [text.trimEnd(), true];
    text += decoder.decode(value, { stream: true });
    const at = head ? text.indexOf('<body>') : -1;
    if (at >= 0) {
      text = text.slice(at + '<body>\n'.length);
      head = false;
    }
    if (!head && text.length > shown) {
      void reader.cancel();
      return [text.slice(0, shown), false];
    }
  }
}
