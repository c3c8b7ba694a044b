import type { ComponentChildren } from 'preact';
import type { Branch, Live, Message, Part, Turn, UsageRow } from './api';
import { fold } from './fold';
import { Icon } from './icons';
import { changed, link } from './route';
import { Prose } from './prose';
import { Raw } from './raw';
import { Steps, type Step } from './steps';
import { writable } from './store';
import { Attachment } from './attachment';
import { copy } from './undo';
import { coded, count, counted, duration, money, T, timeOf, tokens, visible } from './text';

/** What is shown: prompts and last answers, turns, or everything. */
export type Level = 1 | 2 | 3;

interface Props {
  turn: Turn;
  messages: Message[];
  last: boolean;
  live: Live | undefined;
  level: Level;
  path: string;
  sides?: Branch[] | undefined;
  show?: string; // the id of a message to be open
  usage?: UsageRow | undefined;
  fork?: ((t: Turn) => void) | undefined;
}

type Block =
  | { kind: 'prompt'; message: Message; parts: Part[] }
  | { kind: 'answer'; message: Message; part: Part }
  | { kind: 'inserted'; message: Message; part: Part }
  | { kind: 'thought'; message: Message; part: Part; until: string | undefined }
  | { kind: 'steps'; message: Message; steps: Step[] }
  | { kind: 'mark'; message: Message; what: string; bad: boolean }
  | { kind: 'book'; message: Message }
  | { kind: 'compact'; message: Message; part: Part | undefined };

/** A selector of where a message stands: a step, or else a block. */
export const placed = (id: string): string => `[data-messages~="${CSS.escape(id)}"], [data-id="${CSS.escape(id)}"]:not(:has(.step))`;

/** A turn: a prompt and everything up to the next one. */
export function TurnView({ turn, messages, last, live, level, path, sides, show = '', usage, fork }: Props) {
  const calls = Object.values(turn.calls).reduce((a, b) => a + (b ?? 0), 0);
  const blocks = shownOf(blocksOf(messages, level), level);
  const end = blocks.findLast((b) => b.kind === 'steps');
  return (
    <article class={last ? 'turn last' : 'turn'} aria-label={turn.number ? `Turn ${turn.number}` : 'Before the first prompt'} aria-posinset={turn.number || undefined} aria-setsize={-1}>
      <header class="th">
        <b>{turn.number ? `Turn ${count(turn.number)}` : 'Before the first prompt'}</b>
        <span class="first ell"><T s={turn.prompt} /></span>
        <span class="num fig">{timeOf(turn.at)}</span>
        <span class="num fig">{duration(turn.at, turn.until)}</span>
        {usage && <span class="num fig">{tokens(usage.total)} tokens</span>}
        {usage && usage.cost !== undefined && <span class="num fig">{money(usage)}</span>}
        {calls > 0 && !usage && <span class="num fig">{counted(calls, 'call')}</span>}
        {turn.failed > 0 && <span class="del num fig">{count(turn.failed)} failed</span>}
        {turn.added + turn.removed > 0 && (
          <span class="num"><span class="add">+{count(turn.added)}</span> <span class="del">−{count(turn.removed)}</span></span>
        )}
        <span class="sp" />
        <span class="num t3 fig">#{count(turn.from)}–{count(turn.to - 1)}</span>
        {fork && writable.value && turn.number > 0 && (
          <button class="ghost" aria-label="Fork behind this turn" title="Fork behind this turn" onClick={() => fork(turn)}><Icon name="branch" /></button>
        )}
        {turn.id && (
          <button class="ghost" aria-label="Copy the link to this turn" title="Copy the link to this turn" onClick={() => copyLink(turn.id ?? '')}><Icon name="link" /></button>
        )}
      </header>
      {blocks.map((b) => (
        <BlockView key={b.message.id + b.kind + ('part' in b ? b.part?.number : '')} b={b} last={last && b === end} live={live} level={level} path={path} sides={sides} show={show} />
      ))}
    </article>
  );
}

/** The blocks of a level: at the first, prompts and the last answer. */
function shownOf(blocks: Block[], level: Level): Block[] {
  if (level > 1) return blocks;
  const end = blocks.findLastIndex((b) => b.kind === 'answer');
  let begin = end;
  while (begin > 0 && blocks[begin - 1]?.kind === 'answer') begin--;
  return blocks.filter((b, i) => b.kind === 'prompt' || b.kind === 'mark' || b.kind === 'compact' || (i >= begin && i <= end && b.kind === 'answer'));
}

export function copyLink(id: string): void {
  const url = new URL(changed({ m: id, p: '', not: '' }), location.href);
  copy(url.href, 'Link');
}

/** Puts parts together as they are read: steps that follow each other are one box. */
function blocksOf(messages: Message[], level: Level): Block[] {
  const out: Block[] = [];
  const steps = (message: Message): Step[] => {
    const before = out[out.length - 1];
    if (before?.kind === 'steps') return before.steps;
    const made: Block = { kind: 'steps', message, steps: [] };
    out.push(made);
    return made.steps;
  };
  for (const [i, m] of messages.entries()) {
    if (m.unavailable) out.push({ kind: 'mark', message: m, what: m.unavailable, bad: true });
    if (m.bookkeeping) {
      if (level === 3) out.push({ kind: 'book', message: m });
      continue;
    }
    if (m.summary) {
      out.push({ kind: 'compact', message: m, part: m.parts.find((p) => p.kind === 'text') });
      continue;
    }
    if (m.edited) out.push({ kind: 'mark', message: m, what: 'This message was edited by hand', bad: false });
    if (m.voice === 'user') {
      for (const p of m.parts) if (p.inserted) out.push({ kind: 'inserted', message: m, part: p });
      const parts = m.parts.filter((p) => (p.kind === 'text' && !p.inserted) || p.kind === 'attachment');
      if (parts.length > 0) out.push({ kind: 'prompt', message: m, parts });
      for (const p of m.parts) if (p.kind === 'result') steps(m).push({ message: m, result: p });
      continue;
    }
    for (const p of m.parts) {
      if (p.kind === 'call') steps(m).push({ message: m, call: p });
      else if (p.kind === 'result' || p.kind === 'other') steps(m).push({ message: m, result: p });
      else if (p.kind === 'thought') out.push({ kind: 'thought', message: m, part: p, until: messages[i + 1]?.at });
      else if (p.kind === 'attachment') out.push({ kind: 'prompt', message: m, parts: [p] });
      else if (p.text.trim()) out.push({ kind: 'answer', message: m, part: p });
    }
  }
  return out;
}

interface BlockProps {
  b: Block;
  last: boolean;
  live: Live | undefined;
  level: Level;
  path: string;
  sides: Branch[] | undefined;
  show: string;
}

function BlockView({ b, last, live, level, path, sides, show }: BlockProps) {
  const m = b.message;
  const mark = { 'data-id': m.id, 'data-position': m.position, tabIndex: -1 };
  const raw = level === 3 && <Raw path={path} id={m.id} />;
  const key = m.id + b.kind + ('part' in b ? b.part?.number : '');
  const whole = 'part' in b && b.part?.tail ? link(['c', path.split('/')[2] ?? '', 'm', m.id, String(b.part.number)], { b: decodeURIComponent(path.split('/')[4] ?? '') }) : undefined;
  switch (b.kind) {
    case 'prompt':
      return <Prompt mark={mark} parts={b.parts} message={m} path={path} raw={raw} all={level === 3} />;
    case 'answer':
      return m.voice === 'system'
        ? <div {...mark}><Folded name={key} title="System" text={b.part.text} open={level === 3} />{raw}</div>
        : <div {...mark}><Prose text={b.part.text} tail={b.part.tail} bytes={b.part.bytes} whole={whole} />{raw}</div>;
    case 'inserted':
      return <div {...mark}><Folded name={key} title="Inserted by the tool" text={b.part.text} open={level === 3} /></div>;
    case 'thought': {
      const took = duration(m.at, b.until);
      if (!b.part.text.trim()) return <p {...mark} class="think"><Icon name="think" /> Thought, not readable</p>;
      return <div {...mark}><Folded name={key} title={'Thought' + (took && ' for ' + took)} text={b.part.text} think open={level === 3} />{raw}</div>;
    }
    case 'steps':
      return <div {...mark}><Steps steps={b.steps} last={last} live={live} all={level === 3} path={path} sides={sides} show={show} />{raw}</div>;
    case 'mark':
      return <p {...mark} class={b.bad ? 'gap bad' : 'gap'}><Icon name="warning" /> <T s={b.what} /></p>;
    case 'book':
      return <div {...mark} class="book"><span class="ell"><T s={m.role + ' ' + (m.parts[0]?.text.slice(0, 200) ?? '')} /></span>{raw}</div>;
    case 'compact':
      return (
        <div {...mark}>
          <p class="compact">The conversation was compacted here</p>
          {b.part && <Folded name={key} title="Summary" text={b.part.text} open={level === 3} />}
        </div>
      );
  }
}

const promptLines = 24;

interface PromptProps {
  parts: Part[];
  message: Message;
  path: string;
  mark: Record<string, string | number>;
  raw: ComponentChildren;
  all: boolean;
}

function Prompt({ parts, message, path, mark, raw, all }: PromptProps) {
  const by = fold(message.id + 'prompt');
  const open = by.value ?? all;
  const text = parts.filter((p) => p.kind === 'text').map((p) => p.said ?? p.text + (p.tail ? '\n…\n' + p.tail : '')).join('\n').trim();
  const lines = text.split('\n');
  const folded = lines.length > promptLines && !open;
  const files = parts.filter((p) => p.kind === 'attachment');
  return (
    <div class="prompt" {...mark}>
      <div class="said" dir="auto">{coded(folded ? lines.slice(0, 16).join('\n') : text)}</div>
      {lines.length > promptLines && (
        <button class="link" aria-expanded={open} onClick={() => { by.value = !open; }}>
          {open ? 'Show less' : `Show ${counted(lines.length - 16, 'more line')}`}
        </button>
      )}
      {files.length > 0 && <div class="att">{files.map((p) => <Attachment key={p.number} part={p} message={message} path={path} />)}</div>}
      {raw}
    </div>
  );
}

interface FoldedProps {
  name: string;
  title: string;
  text: string;
  think?: boolean;
  open: boolean;
}

function Folded({ name, title, text, think, open: byItself }: FoldedProps) {
  const by = fold(name);
  const open = by.value ?? byItself;
  return (
    <>
      <button class="think" aria-expanded={open} onClick={() => { by.value = !open; }}>
        <Icon name={think ? 'think' : 'list'} />
        {title}
        {!open && <i class="ell"><T s={text.slice(0, 200)} /></i>}
      </button>
      {open && <div class={think ? 'said thought' : 'said thought t2'} dir="auto">{visible(text)}</div>}
    </>
  );
}
