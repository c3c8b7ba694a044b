import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { get, lines, segment, type Context } from './api';
import { since } from './contexts';
import { Icon } from './icons';
import { Preview } from './preview';
import { changed, go, link, query } from './route';
import { Switch } from './shell';
import { counted, dayOf, T, timeOf, visible } from './text';

interface Hit {
  context: string;
  title: string;
  branches: string[];
  position: number;
  id: string;
  role: string;
  created_at: string;
  pointer?: string;
  snippet: string;
  marks: [number, number][];
  partial?: boolean;
}

interface Found {
  hits: Hit[];
  next?: string;
  behind: number;
}

interface Match {
  record: string;
  context: string;
  branches: string[];
  position: number;
  id: string;
  line: string;
}

const pause = 120; // ms without a key, before it asks

const conditions = ['context', 'project', 'role', 'path', 'since', 'until'];

export function Search(_: { parts: string[] }) {
  const q = query.value;
  const words = q.get('q') ?? '';
  const mode = q.get('mode') ?? 'words';
  const found = useSignal<Found | undefined>(undefined);
  const stale = useSignal(false);
  const failed = useSignal('');
  const at = useSignal(-1);
  const list = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), [mode]); // what is typed after a choice of the mode goes on
  const given = conditions.map((name) => q.get(name));
  useEffect(() => {
    if (!words.trim()) {
      found.value = undefined;
      stale.value = false;
      return;
    }
    stale.value = true;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        found.value = mode === 'exact' ? await exact(words, q.get('context') ?? '', abort.signal) : await get<Found>('/search', {
          q: words, limit: 60, context: q.get('context') ?? '', project: q.get('project') ?? '', role: rolesOf(q.get('role')), path: q.get('path') ?? '',
          since: since(q.get('since')),
        }, abort.signal);
        at.value = -1;
        failed.value = '';
      } catch (e) {
        if (!abort.signal.aborted) failed.value = e instanceof Error ? e.message : String(e);
      }
      if (!abort.signal.aborted) stale.value = false;
    }, pause);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [words, mode, ...given]);

  const groups = grouped(found.value?.hits ?? []);
  const flat = groups.flatMap((g) => g.hits);
  const chosen = flat[Math.max(0, at.value)];
  const onKeyDown = (e: KeyboardEvent) => {
    if ((e.target as Element).matches('select')) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (move) {
      e.preventDefault();
      at.value = Math.max(0, Math.min(flat.length - 1, at.value + move));
      list.current?.querySelectorAll('.hit')[at.value]?.scrollIntoView({ block: 'nearest' });
    } else if (e.key === 'Enter' && chosen && !stale.value) {
      e.preventDefault();
      go(to(chosen, words, q.get('role')));
    }
  };
  return (
    <div class="col" onKeyDown={onKeyDown}>
      <header class="bar">
        <label class="field">
          <Icon name="search" />
          <span class="vh">Search all conversations</span>
          <input ref={field} type="search" value={words} spellcheck={false} autocomplete="off" placeholder={mode === 'exact' ? 'A regular expression' : 'Words, "phrases", OR, -without, begin*'}
            onInput={(e) => go(changed({ q: e.currentTarget.value }), true)} />
        </label>
        <span class="seg" role="group" aria-label="Mode">
          <Switch name="mode" value="" now={mode === 'words' ? '' : mode}>Words</Switch>
          <Switch name="mode" value="exact" now={mode}>Exact</Switch>
        </span>
      </header>
      <Facets hits={flat} />
      {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
      <div class="halves">
        <div class={stale.value ? 'scroll dim' : 'scroll'} ref={list} role={flat.length > 0 ? 'listbox' : 'region'} aria-label="Hits" tabIndex={0} aria-busy={stale.value}
          aria-activedescendant={chosen && 'hit-' + flat.indexOf(chosen)}>
          {!words.trim() && <div class="empty"><p>Search what people and agents said, did and read</p></div>}
          {stale.value && !found.value && <p class="t3 pad" role="status">Searching…</p>}
          {found.value && flat.length === 0 && !stale.value && <None words={words} mode={mode} />}
          {groups.map((g) => (
            <div key={g.context} role="group" aria-label={g.title.slice(0, 200) || 'Untitled'}>
              <div class="grp to" role="presentation" onClick={() => go(link(['c', g.context], { b: g.hits[0]?.branches[0] }))}><T class="ell" s={g.title || 'Untitled'} /> <span>{counted(g.hits.length, 'hit')}</span></div>
              {g.hits.map((h) => (
                <a key={h.id + h.position} id={'hit-' + flat.indexOf(h)} class={chosen === h ? 'hit sel' : 'hit'} role="option" aria-selected={chosen === h} href={to(h, words, q.get('role'))} tabIndex={-1}
                  onPointerEnter={() => { at.value = flat.indexOf(h); }}>
                  <span class="s t3 num">
                    {h.role && <><T s={whoOf(h)} /> · </>}#{h.position}{h.created_at && <> · {dayOf(new Date(h.created_at))[0]} {timeOf(h.created_at)}</>} · <T s={branchesOf(h.branches)} />
                    {h.partial && ' · some words are missing'}
                  </span>
                  <span class="snip"><Marked text={h.snippet} marks={h.marks} /></span>
                </a>
              ))}
            </div>
          ))}
          {found.value && flat.length > 0 && (
            <p class="t3 s pad">{found.value.behind > 0 ? `${counted(found.value.behind, 'commit')} are not in the index yet` : mode === 'words' ? 'The index has every commit.' : ''}</p>
          )}
        </div>
        {chosen && chosen.branches[0] && <Preview context={chosen.context} branch={chosen.branches[0]} id={chosen.id} words={mode === 'words' ? words : ''} />}
      </div>
    </div>
  );
}

const roles: [string, string][] = [['user', 'People'], ['assistant', 'Models'], ['tool', 'Tools']];
const rolesOf = (role: string | null): string[] => (role ? [role] : []);

/** Conditions, which stand in the address; none is hidden. */
function Facets({ hits }: { hits: Hit[] }) {
  const q = query.value;
  const context = q.get('context');
  return (
    <div class="filters" role="group" aria-label="Conditions">
      {context && (
        <a class="fil on" href={changed({ context: '' })} title="Remove this condition">in <T s={hits[0]?.title || context.slice(0, 8)} /> <Icon name="close" /></a>
      )}
      <span class="seg" role="group" aria-label="Said by">
        <Switch name="role" value="" now={q.get('role') ?? ''}>Anyone</Switch>
        {roles.map(([value, title]) => <Switch name="role" value={value} now={q.get('role') ?? ''}>{title}</Switch>)}
      </span>
      <span class="seg" role="group" aria-label="When">
        <Switch name="since" value="" now={q.get('since') ?? ''}>Any time</Switch>
        <Switch name="since" value="7" now={q.get('since') ?? ''}>7 days</Switch>
        <Switch name="since" value="30" now={q.get('since') ?? ''}>30 days</Switch>
      </span>
      {['project', 'path'].filter((name) => q.get(name)).map((name) => (
        <a class="fil on" href={changed({ [name]: '' })} title="Remove this condition">{name} <T s={q.get(name) ?? ''} /> <Icon name="close" /></a>
      ))}
    </div>
  );
}

/** Who says what was found. Some records of what a tool answered have the role of the user. */
const whoOf = (h: Hit): string => (h.role === 'user' && /\/(toolUseResult|content\/\d+\/content|output|result)\b/.test(h.pointer ?? '') ? 'tool' : h.role);

const to = (h: Hit, words: string, role: string | null): string => link(['c', h.context], { b: h.branches[0], m: h.id, q: words, role: role ?? '' });

function branchesOf(all: string[]): string {
  if (all.length === 0) return 'on no branch';
  return (all[0] ?? '') + (all.length > 1 ? ` +${all.length - 1}` : '');
}

const named = 50; // conversations whose titles are looked up

async function exact(regex: string, context: string, abort: AbortSignal): Promise<Found> {
  const hits: Hit[] = [];
  for (const m of await lines<Match>('/grep', { regex, context, limit: 200 }, abort)) {
    if (m.record !== 'match' || hits.some((h) => h.id === m.id && h.snippet === m.line.slice(0, 400))) continue;
    hits.push({ context: m.context, title: m.context.slice(0, 8), branches: m.branches, position: m.position, id: m.id, role: '', created_at: '', snippet: m.line.slice(0, 400), marks: [] });
  }
  const ids = [...new Set(hits.map((h) => h.context))].slice(0, named);
  const all = await Promise.all(ids.map((id) => get<Context>(`/contexts/${segment(id)}`, {}, abort).catch(() => undefined)));
  const titles = new Map(all.map((c) => [c?.id, c?.title || 'Untitled']));
  for (const h of hits) h.title = titles.get(h.context) ?? h.title;
  return { hits, behind: 0 };
}

function grouped(hits: Hit[]): { context: string; title: string; hits: Hit[] }[] {
  const groups = new Map<string, { context: string; title: string; hits: Hit[] }>();
  for (const h of hits) {
    const g = groups.get(h.context) ?? { context: h.context, title: h.title, hits: [] };
    g.hits.push(h);
    groups.set(h.context, g);
  }
  return [...groups.values()];
}

/** A text with the words found in it. The marks count bytes. */
function Marked({ text, marks }: { text: string; marks: [number, number][] }) {
  if (marks.length === 0) return <>{visible(text)}</>;
  const bytes = new TextEncoder().encode(text);
  const decode = (from: number, to: number) => new TextDecoder().decode(bytes.subarray(from, to));
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const [from, end] of marks) {
    if (from < at || end <= from) continue;
    out.push(visible(decode(at, from)), <mark>{visible(decode(from, end))}</mark>);
    at = end;
  }
  out.push(visible(decode(at, bytes.length)));
  return <bdi>{out}</bdi>;
}

function None({ words, mode }: { words: string; mode: string }) {
  const all = words.trim().split(/\s+/);
  return (
    <div class="empty">
      <p>Nothing has <T s={words} /></p>
      {mode === 'words' && all.length > 1 && !/["*]|\bOR\b/.test(words) && <a class="link" href={changed({ q: all.join(' OR ') })}>Find messages with any of the words</a>}
    </div>
  );
}
