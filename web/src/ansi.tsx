// Output of a terminal: colours become classes, and every other sequence goes.
import type { ComponentChildren } from 'preact';
import { visible } from './text';

const sequence = /\u001b(?:\[([0-9;:]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[PX^_][^\u001b]*\u001b\\|[ -/]*[0-~])/g;
const most = 10_000; // spans; more is plain
const colours = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

interface Style {
  colour: string;
  bold: boolean;
  dim: boolean;
  under: boolean;
  inverse: boolean;
}

const plain: Style = { colour: '', bold: false, dim: false, under: false, inverse: false };

/** The nearest of eight colours: those of the page have contrast in both schemes. */
function nearest(r: number, g: number, b: number): string {
  const high = Math.max(r, g, b);
  const bit = (v: number) => (v > high * 0.6 && v > 60 ? 1 : 0);
  return colours[bit(r) + 2 * bit(g) + 4 * bit(b)] ?? '';
}

function apply(was: Style, codes: string): Style {
  let s = { ...was };
  const all = codes.split(/[;:]/).map(Number);
  for (let i = 0; i < all.length; i++) {
    const c = all[i] ?? 0;
    if (c === 0) s = { ...plain };
    else if (c === 1) s.bold = true;
    else if (c === 2) s.dim = true;
    else if (c === 4) s.under = true;
    else if (c === 7) s.inverse = true;
    else if (c === 22) s.bold = s.dim = false;
    else if (c === 24) s.under = false;
    else if (c === 27) s.inverse = false;
    else if (c === 39) s.colour = '';
    else if (c >= 30 && c < 38) s.colour = colours[c - 30] ?? '';
    else if (c >= 90 && c < 98) s.colour = colours[c - 90] ?? '';
    else if (c === 38 || c === 48) {
      if (all[i + 1] === 2) {
        if (c === 38) s.colour = nearest(all[i + 2] ?? 0, all[i + 3] ?? 0, all[i + 4] ?? 0);
        i += 4;
      } else if (all[i + 1] === 5) {
        const n = all[i + 2] ?? 0;
        if (c === 38) {
          s.colour = n < 16 ? (colours[n % 8] ?? '') : n > 231 ? '' : nearest(Math.floor((n - 16) / 36) * 51, (Math.floor((n - 16) / 6) % 6) * 51, ((n - 16) % 6) * 51);
        }
        i += 2;
      }
    }
  }
  return s;
}

/** A carriage return writes over the line. */
const overwritten = (text: string): string =>
  text.includes('\r') ? text.replace(/\r+\n/g, '\n').split('\n').map((l) => l.slice(l.lastIndexOf('\r') + 1)).join('\n') : text;

export function Ansi({ text }: { text: string }) {
  text = overwritten(text);
  if (!text.includes('\u001b')) return <>{visible(text)}</>;
  const out: ComponentChildren[] = [];
  let style = plain;
  let at = 0;
  const put = (piece: string) => {
    if (!piece) return;
    const c = [style.colour && 'a-' + style.colour, style.bold && 'a-bold', style.dim && 'a-dim', style.under && 'a-under', style.inverse && 'a-inverse']
      .filter(Boolean).join(' ');
    out.push(c ? <span class={c}>{visible(piece)}</span> : visible(piece));
  };
  for (const m of text.matchAll(sequence)) {
    if (out.length > most) break;
    put(text.slice(at, m.index));
    if (m[2] === 'm') style = apply(style, m[1] ?? '');
    at = m.index + m[0].length;
  }
  if (out.length > most) return <>{visible(text.replace(sequence, ''))}</>;
  put(text.slice(at));
  return <>{out}</>;
}
