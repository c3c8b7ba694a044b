import { useSignal } from '@preact/signals';
import type { Branch, Live, Message, Part, Tool } from './api';
import { Ansi } from './ansi';
import { Diff, changesOf } from './diff';
import { fold } from './fold';
import { Icon } from './icons';
import { now } from './live';
import { link } from './route';
import { ago, count, counted, duration, size, T, visible } from './text';

/** A call with its results, or a result whose call is not in view. */
export interface Step {
  message: Message;
  call?: Part;
  result?: Part;
}

const words: Record<Tool, string> = {
  shell: 'Shell', read: 'Read', edit: 'Edit', search: 'Search', web: 'Web', todo: 'Tasks', agent: 'Agent', other: 'Call',
};
const openLines = 40; // of a diff that is open by itself
const outputLines = 12; // of an output that are shown at first

interface Props {
  steps: Step[];
  last: boolean;
  live: Live | undefined;
  all: boolean; // is everything to be shown?
  path: string; // of the branch
  sides: Branch[] | undefined;
  show: string; // the id of a message to be open
}

/** The ids of the messages of a step. */
const idsOf = (s: Step): string[] => [s.message.id, ...(s.call?.results ?? []).map((r) => r.id ?? '')];

export function Steps({ steps, last, live, all, path, sides, show }: Props) {
  const open = fold((steps[0]?.message.id ?? '') + 'steps');
  const quiet = steps.filter((s) => s.call && (s.call.tool === 'read' || s.call.tool === 'search') && !failed(s));
  if (quiet.length === steps.length && steps.length > 6 && !(open.value ?? (all || steps.some((s) => idsOf(s).includes(show))))) {
    const reads = steps.filter((s) => s.call?.tool === 'read').length;
    return (
      <div class="steps">
        <button class="sh" aria-expanded="false" onClick={() => { open.value = true; }}>
          <Icon name="read" />
          <span class="a">
            {[reads > 0 && `Read ${counted(reads, 'file')}`, steps.length > reads && `searched ${counted(steps.length - reads, 'time')}`].filter(Boolean).join(', ')}
          </span>
          <span class="m"><Icon name="chevron" class="chev" /></span>
        </button>
      </div>
    );
  }
  return (
    <div class="steps">
      {steps.map((s, i) => <StepView key={s.message.id + (s.call?.number ?? s.result?.number)} s={s} last={last && i === steps.length - 1} live={live} all={all} path={path} sides={sidesOf(s, steps, sides)} show={show} />)}
    </div>
  );
}

const failed = (s: Step): boolean => !!s.result?.failed || !!s.call?.results?.some((r) => r.failed);

/** The branches of the sub-agents that a call began. Those of several calls in one message come in their order. */
function sidesOf(s: Step, steps: Step[], sides: Branch[] | undefined): Branch[] {
  if (s.call?.tool !== 'agent') return [];
  const here = sides?.filter((b) => b.base === s.message.position + 1) ?? [];
  const calls = steps.filter((other) => other.message === s.message && other.call?.tool === 'agent');
  return calls.length === here.length ? here.slice(calls.indexOf(s), calls.indexOf(s) + 1) : here;
}

function StepView({ s, last, live, all: every, path, sides, show }: { s: Step } & Omit<Props, 'steps'>) {
  const p = s.call ?? s.result;
  const ids = idsOf(s);
  const all = every || ids.includes(show);
  const tool: Tool = s.call?.tool ?? 'other';
  const bad = failed(s);
  const lines = (s.call?.added ?? 0) + (s.call?.removed ?? 0);
  const byItself = (tool === 'edit' && lines > 0 && lines <= openLines) || (tool === 'shell' && (bad || last)) || (tool === 'other' && bad);
  const choice = fold(s.message.id + (s.call ? 'call' : 'result') + p?.number);
  const open = choice.value ?? (byItself || all);
  if (!p) return null;
  const result = s.call?.results?.[0] ?? s.result;
  return (
    <div class="step" data-messages={ids.join(' ')}>
      <button class="sh" aria-expanded={open} onClick={() => { choice.value = !open; }}>
        <Icon name={s.call ? tool : 'list'} />
        <span class="k">{s.call ? (tool === 'other' ? <T class="ell" s={s.call.name || 'Call'} /> : words[tool]) : 'Result'}</span>
        <T class="a ell" s={!s.call ? p.text.slice(0, 200) : (tool === 'todo' && progress(s.call.text)) || s.call.summary} />
        <span class="m num">
          {s.call && lines > 0 && <span><span class="add">+{count(s.call.added ?? 0)}</span> <span class="del">−{count(s.call.removed ?? 0)}</span></span>}
          {bad && <span class="del">failed</span>}
          {!bad && result && tool === 'read' && <span>{counted(linesOf(result), 'line')}</span>}
          {s.call && !result && <Waiting message={s.message} last={last} live={live} />}
          {result && s.message.at && result !== s.result && tool === 'shell' && <span>{size(result.bytes)}</span>}
          <Icon name="chevron" class="chev" />
        </span>
      </button>
      {sides?.map((b) => (
        <a key={b.name} class="more" href={link(['c', path.split('/')[2] ?? ''], { b: b.name, p: b.base })}>
          Open its {counted(b.messages - (b.base ?? 0), 'message')}
        </a>
      ))}
      {open && s.call && <Body tool={tool} call={s.call} all={all} whole={wholeOf(path, s.message.id)} />}
      {open && !s.call && s.result && <Output part={s.result} all={all} whole={wholeOf(path, s.message.id)(s.result)} />}
    </div>
  );
}

/** The address of a text that is shown in part. */
const wholeOf = (path: string, id: string) => (p: Part): string => {
  const [, , context = '', , branch = ''] = path.split('/');
  return link(['c', context, 'm', p.id ?? id, String(p.number)], { b: decodeURIComponent(branch) });
};

const linesOf = (p: Part): number => (p.text ? p.text.replace(/\n$/, '').split('\n').length : 0);

function Waiting({ message, last, live }: { message: Message; last: boolean; live: Live | undefined }) {
  if (!last || !live?.call) return <span>no result recorded</span>;
  return <span><span class="spin" aria-hidden="true" /> {message.at ? ago(message.at, now.value) : ''}, no result yet</span>;
}

function Body({ tool, call, all, whole }: { tool: Tool; call: Part; all: boolean; whole: (p: Part) => string }) {
  const results = call.results ?? [];
  const changes = tool === 'edit' ? changesOf(call.text) : [];
  return (
    <>
      {changes.length > 0 ? changes.map((c, i) => <Diff key={i} change={c} />)
        : tool === 'shell' ? <Command text={commandOf(call.text) ?? call.summary ?? ''} />
        : tool === 'todo' ? <Todo text={call.text} />
        : tool === 'read' || tool === 'search' ? null
        : <pre class="out" tabIndex={0}>{visible(cut(pretty(call.text)))}</pre>}
      {results.filter((r) => tool !== 'edit' || r.failed).map((r) => <Output key={r.number} part={r} all={all} whole={whole(r)} />)}
    </>
  );
}

const rowLength = 60; // characters of a command that its row shows in any window

/** A command in full, if its row may not show all of it. */
function Command({ text }: { text: string }) {
  return text.length > rowLength || text.includes('\n') ? <pre class="out cmd">{visible(cut(text))}</pre> : null;
}

/** A result, of which the last lines are shown at first. */
function Output({ part, all: every, whole }: { part: Part; all: boolean; whole: string }) {
  const all = useSignal(every);
  if (!part.text.trim()) return <p class="out t3">no output</p>;
  const lines = (part.text + (part.tail ? `\n… ${size(part.bytes - part.text.length - part.tail.length)} left out …\n` + part.tail : '')).replace(/\n$/, '').split('\n');
  const hidden = all.value ? 0 : Math.max(0, lines.length - outputLines);
  return (
    <>
      {hidden > 0 && <button class="more" onClick={() => { all.value = true; }}>Show {counted(hidden, 'earlier line')}</button>}
      <pre class={part.failed ? 'out bad' : 'out'} tabIndex={0}><Ansi text={cut(lines.slice(hidden).join('\n'))} /></pre>
      {part.tail && <a class="more" href={whole}>Open all {size(part.bytes)}</a>}
    </>
  );
}

const longest = 2000; // characters of a line
const short = (line: string): string => (line.length > longest ? line.slice(0, longest) + ` … ${count(line.length - longest)} more characters` : line);
const cut = (text: string): string => text.split('\n').map(short).join('\n');

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const v: unknown = JSON.parse(text);
    return v && typeof v === 'object' && !Array.isArray(v) ? (v as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function commandOf(text: string): string | undefined {
  const o = parsed(text);
  for (const name of ['command', 'cmd']) {
    const v = o?.[name];
    if (typeof v === 'string') return v;
    if (Array.isArray(v)) return v.join(' ');
  }
  return undefined;
}

function pretty(text: string): string {
  if (text.length > 100_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

interface Task {
  text: string;
  done: boolean;
  on: boolean; // is it being done?
}

/** The tasks that a call notes. */
function tasksOf(text: string): Task[] | undefined {
  const o = parsed(text);
  const list = [o?.['todos'], o?.['plan'], o?.['items']].find(Array.isArray) as unknown[] | undefined;
  return list?.slice(0, 200).map((item) => {
    const t = (item ?? {}) as Record<string, unknown>;
    const text = String(t['content'] ?? t['step'] ?? t['text'] ?? t['description'] ?? item);
    return { text, done: t['status'] === 'completed' || t['status'] === 'done', on: t['status'] === 'in_progress' };
  });
}

/** How many tasks are done, and which one is being done. */
function progress(text: string): string {
  const all = tasksOf(text);
  if (!all) return '';
  const now = all.find((t) => t.on)?.text;
  return `${all.filter((t) => t.done).length} of ${all.length} done` + (now ? ` · ${now.slice(0, 200)}` : '');
}

function Todo({ text }: { text: string }) {
  const all = tasksOf(text);
  if (!all) return <pre class="out" tabIndex={0}>{visible(cut(pretty(text)))}</pre>;
  return (
    <ul class="todo">
      {all.map((t, i) => (
        <li key={i} class={t.done ? 'd' : t.on ? 'o' : ''}>
          <Icon name={t.done ? 'todo' : 'other'} />
          <span class="vh">{t.done ? 'done:' : t.on ? 'in progress:' : 'to do:'}</span>
          <T s={t.text} />
        </li>
      ))}
    </ul>
  );
}

export const took = duration;
