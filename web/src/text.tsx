// Stored text on the page. Every field is somebody's text, and may be made to deceive: it goes through here, into text
// nodes alone. What cannot be seen is shown.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

// Controls of direction, characters without width outside of emoji, tags, and other control characters.
const hidden = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\u00ad]|[\u{e0000}-\u{e007f}]+|(?<!\p{Emoji_Presentation}|\p{Extended_Pictographic}|\ufe0f)\u200d|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu;
// More than eight marks on one character.
const stacked = /(\p{M}{8})\p{M}+/gu;

const names: Record<string, string> = {
  '\u061c': 'ALM', '\u200e': 'LRM', '\u200f': 'RLM', '\u202a': 'LRE', '\u202b': 'RLE', '\u202c': 'PDF', '\u202d': 'LRO', '\u202e': 'RLO',
  '\u2066': 'LRI', '\u2067': 'RLI', '\u2068': 'FSI', '\u2069': 'PDI', '\u200b': 'ZWSP', '\u2060': 'WJ', '\ufeff': 'BOM', '\u00ad': 'SHY',
  '\u200d': 'ZWJ',
};

/** The name of an invisible character, or what tags spell. */
function nameOf(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  if (code >= 0xe0000) {
    const said = [...found].map((c) => (c.codePointAt(0) ?? 0) - 0xe0000).filter((c) => c >= 0x20 && c < 0x7f);
    return 'TAGS ' + String.fromCharCode(...said.slice(0, 80));
  }
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return names[found] ?? 'U+' + code.toString(16).toUpperCase().padStart(4, '0');
}

export const hiddenTitle = 'An invisible character';

/** Parts of a text: what can be seen, and the names of what is hidden. */
export function pieces(text: string): { text: string; hidden: boolean }[] {
  text = text.toWellFormed().replace(stacked, '$1');
  const out: { text: string; hidden: boolean }[] = [];
  let at = 0;
  for (const m of text.matchAll(hidden)) {
    if (m.index > at) out.push({ text: text.slice(at, m.index), hidden: false });
    out.push({ text: nameOf(m[0]), hidden: true });
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push({ text: text.slice(at), hidden: false });
  return out;
}

/** A text with chips for what is hidden. */
export const visible = (text: string): ComponentChildren =>
  pieces(text).map((p) => (p.hidden ? <span class="hid" title={hiddenTitle}>{p.text}</span> : p.text));

const longest = 2000; // characters of a field

/** A field of stored text, in one line. */
export function T({ s, class: c, title }: { s: string | undefined; class?: string; title?: boolean }) {
  const text = s ?? '';
  const line = text.slice(0, 10 * longest).replace(/\s+/g, ' ').trim();
  return (
    <bdi class={c} title={title ? text.slice(0, 500) : undefined}>
      {visible(line.length > longest ? line.slice(0, longest) + '…' : line)}
    </bdi>
  );
}

/** A path in one line. Where it is too long, its beginning is left out: the name of the file stays. */
export function Path({ s }: { s: string }) {
  const cut = s.lastIndexOf('/') + 1;
  return (
    <span class="path mono" title={s.slice(0, 500)}>
      {cut > 0 && <span class="dir"><T s={s.slice(0, cut)} /></span>}
      <T class="ell" s={s.slice(cut)} />
    </span>
  );
}

const number = new Intl.NumberFormat('en');
export const count = (n: number): string => number.format(n);
export const counted = (n: number, one: string, many = one + 's'): string => `${count(n)} ${n === 1 ? one : many}`;

export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (bytes >= 1024 && i < units.length - 1) {
    bytes /= 1024;
    i++;
  }
  return `${i === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1).replace(/\.0$/, '')} ${units[i]}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' });
const dayOfYear = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric' });
const weekday = new Intl.DateTimeFormat('en', { weekday: 'long' });

export const timeOf = (at: string | undefined): string => (at ? clock.format(new Date(at)) : '');

export function dateOf(at: Date): string {
  return (at.getFullYear() === new Date().getFullYear() ? day : dayOfYear).format(at);
}

/** The day of a time in words, and its date. */
export function dayOf(at: Date, now = new Date()): [string, string] {
  const begin = (d: Date) => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();
  const days = Math.round((begin(now) - begin(at)) / 86_400_000);
  if (days === 0) return ['Today', dateOf(at)];
  if (days === 1) return ['Yesterday', dateOf(at)];
  if (days > 1 && days < 7) return [weekday.format(at), dateOf(at)];
  return [dateOf(at), ''];
}

/** How long ago a time is. */
export function ago(at: string, now: number): string {
  const s = Math.max(0, Math.round((now - Date.parse(at)) / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

export function duration(from: string | undefined, to: string | undefined): string {
  if (!from || !to) return '';
  const s = Math.round((Date.parse(to) - Date.parse(from)) / 1000);
  if (s < 1) return '';
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 && s < 600 ? ` ${s % 60} s` : ''}`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** A number of tokens, in three figures. */
export const tokens = (n: number): string => compact.format(n);

interface Cost {
  cost?: number;
  unpriced: number;
  estimated: number;
}

/** What steps cost: at least that much if some have no price, and nothing known if none has one. */
export function money(c: Cost): string {
  if (c.cost === undefined) return '–';
  return (c.unpriced > 0 ? '≥\u00a0' : '') + (c.estimated > 0 ? '~' : '') + '$' + (c.cost < 1000 ? c.cost.toFixed(2) : count(Math.round(c.cost)));
}

/** A prompt: as it was typed, with code between backticks set as code. */
export function coded(text: string): ComponentChildren {
  const out: ComponentChildren[] = [];
  for (const [i, part] of text.slice(0, 1 << 20).split(/(```[^\n]*\n[^]*?(?:\n```|$)|`[^`\n]+`)/).entries()) {
    if (i % 2 === 0) out.push(visible(part));
    else if (part.startsWith('```')) out.push(<code class="block">{visible(part.replace(/^```[^\n]*\n/, '').replace(/\n```$/, ''))}</code>);
    else out.push(<code>{visible(part.slice(1, -1))}</code>);
  }
  return out;
}

/** The title of the window for a context. It is the one place where stored text leaves the page's own boxes. */
const titleOf = (title: string): string =>
  (title || 'Untitled').slice(0, 100).toWellFormed().replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ').trim() + ' · ctxdir';

/** Gives the window the title of a context while a screen is there, once it knows the title. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    if (title === undefined) return;
    document.title = titleOf(title);
    return () => {
      document.title = 'ctxdir';
    };
  }, [title]);
}
