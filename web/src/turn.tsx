import { useSignal } from '@preact/signals';
import type { Live, Message, Part, Turn } from './api';
import { Icon } from './icons';
import { changed, go } from './route';
import { Prose } from './prose';
import { Steps, type Step } from './steps';
import { Attachment } from './attachment';
import { count, counted, duration, T, timeOf, visible } from './text';

interface Props {
  turn: Turn;
  messages: Message[];
  last: boolean;
  live: Live | undefined;
  context: string;
}

type Block =
  | { kind: 'prompt'; message: Message; parts: Part[] }
  | { kind: 'answer'; message: Message; part: Part }
  | { kind: 'inserted'; message: Message; part: Part }
  | { kind: 'thought'; message: Message; part: Part; until: string | undefined }
  | { kind: 'steps'; message: Message; steps: Step[] }
  | { kind: 'mark'; message: Message; what: string; bad: boolean }
  | { kind: 'compact'; message: Message; part: Part | undefined };

/** A turn: a prompt and everything up to the next one. */
export function TurnView({ turn, messages, last, live }: Props) {
  const calls = Object.values(turn.calls).reduce((a, b) => a + (b ?? 0), 0);
  return (
    <article class={last ? 'turn last' : 'turn'} aria-label={turn.number ? `Turn ${turn.number}` : 'Before the first prompt'} aria-posinset={turn.number || undefined} aria-setsize={-1}>
      <header class="th">
        <b>{turn.number ? `Turn ${count(turn.number)}` : 'Before the first prompt'}</b>
        <span class="num">{timeOf(turn.at)}</span>
        <span class="num">{duration(turn.at, turn.until)}</span>
        {calls > 0 && <span class="num">{counted(calls, 'call')}</span>}
        {turn.failed > 0 && <span class="del num">{count(turn.failed)} failed</span>}
        {turn.added + turn.removed > 0 && (
          <span class="num"><span class="add">+{count(turn.added)}</span> <span class="del">−{count(turn.removed)}</span></span>
        )}
        <span class="sp" />
        <span class="num t3">#{count(turn.from)}–{count(turn.to - 1)}</span>
        {turn.id && (
          <button class="ghost" aria-label="Copy the link to this turn" onClick={() => copyLink(turn.id ?? '')}><Icon name="link" /></button>
        )}
      </header>
      {blocksOf(messages).map((b) => <BlockView key={b.message.id + b.kind + ('part' in b ? b.part?.number : '')} b={b} last={last} live={live} />)}
    </article>
  );
}

function copyLink(id: string): void {
  const url = new URL(changed({ m: id, p: '' }), location.href);
  void navigator.clipboard.writeText(url.href);
  go(url.pathname + url.search, true);
}

/** Puts parts together as they are read: steps that follow each other are one box. */
function blocksOf(messages: Message[]): Block[] {
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
    if (m.bookkeeping) continue;
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

function BlockView({ b, last, live }: { b: Block; last: boolean; live: Live | undefined }) {
  const mark = { 'data-id': b.message.id, 'data-position': b.message.position };
  switch (b.kind) {
    case 'prompt':
      return <Prompt {...mark} parts={b.parts} message={b.message} />;
    case 'answer':
      return b.message.voice === 'system'
        ? <Folded {...mark} title="System" text={b.part.text} />
        : <div {...mark}><Prose text={b.part.text} tail={b.part.tail} bytes={b.part.bytes} /></div>;
    case 'inserted':
      return <Folded {...mark} title="Inserted by the tool" text={b.part.text} />;
    case 'thought':
      return <Folded {...mark} title={'Thought' + (duration(b.message.at, b.until) && ' for ' + duration(b.message.at, b.until))} text={b.part.text} think />;
    case 'steps':
      return <div {...mark}><Steps steps={b.steps} last={last} live={live} /></div>;
    case 'mark':
      return <p {...mark} class={b.bad ? 'gap bad' : 'gap'}><Icon name="warning" /> <T s={b.what} /></p>;
    case 'compact':
      return (
        <div {...mark}>
          <p class="compact">The conversation was compacted here</p>
          {b.part && <Folded title="Summary" text={b.part.text} />}
        </div>
      );
  }
}

const promptLines = 24;

function Prompt({ parts, message, ...mark }: { parts: Part[]; message: Message }) {
  const open = useSignal(false);
  const text = parts.filter((p) => p.kind === 'text').map((p) => p.said ?? p.text + (p.tail ? '\n…\n' + p.tail : '')).join('\n').trim();
  const lines = text.split('\n');
  const folded = lines.length > promptLines && !open.value;
  const files = parts.filter((p) => p.kind === 'attachment');
  return (
    <div class="prompt" {...mark}>
      <div class="said" dir="auto">{visible(folded ? lines.slice(0, 16).join('\n') : text)}</div>
      {lines.length > promptLines && (
        <button class="link" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>
          {open.value ? 'Show less' : `Show ${counted(lines.length - 16, 'more line')}`}
        </button>
      )}
      {files.length > 0 && <div class="att">{files.map((p) => <Attachment key={p.number} part={p} message={message} />)}</div>}
    </div>
  );
}

function Folded({ title, text, think, ...mark }: { title: string; text: string; think?: boolean }) {
  const open = useSignal(false);
  return (
    <div {...mark}>
      <button class="think" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>
        <Icon name={think ? 'think' : 'list'} />
        {title}
        {!open.value && <i class="ell"><T s={text.slice(0, 200)} /></i>}
      </button>
      {open.value && <div class={think ? 'said thought' : 'said thought t2'} dir="auto">{visible(text)}</div>}
    </div>
  );
}
