// One part of a message in full, of any size: ranges of its bytes, and only the lines in view.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, range, segment, type Context } from './api';
import { Icon } from './icons';
import { link, query } from './route';
import { Rows } from './rows';
import { count, T, visible } from './text';

const piece = 256 << 10; // bytes that are asked for at a time
const width = 2000; // characters of a row

interface Line {
  key: string;
  number: number | undefined;
  text: string;
}

export function PartView({ parts }: { parts: string[] }) {
  const [, id = '', , message = '', number = '0'] = parts;
  const lines = useSignal<Line[]>([]);
  const failed = useSignal('');
  const state = useRef({ at: 0, line: 1, rest: '', done: false, busy: false, decoder: new TextDecoder() });
  const branch = query.value.get('b') ?? '';
  const more = async () => {
    const s = state.current;
    if (s.done || s.busy) return;
    s.busy = true;
    try {
      const b = branch || (await get<Context>('/contexts/' + segment(id))).active_branch;
      const path = `/contexts/${segment(id)}/branches/${segment(b)}/messages/${segment(message)}/parts/${segment(number)}`;
      const got = await range(path, s.at, s.at + piece);
      s.at += got.bytes.length;
      s.done = s.at >= got.total;
      const text = s.decoder.decode(got.bytes, { stream: !s.done });
      const all = (s.rest + text).split('\n');
      s.rest = s.done ? '' : (all.pop() ?? '');
      const out: Line[] = [];
      for (const l of all) {
        for (let i = 0; i === 0 || i < l.length; i += width) {
          out.push({ key: `${s.line} ${i}`, number: i === 0 ? s.line : undefined, text: l.slice(i, i + width) });
        }
        s.line++;
      }
      lines.value = [...lines.value, ...out];
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
      s.done = true;
    }
    s.busy = false;
  };
  useEffect(() => void more(), []);
  return (
    <>
      <header class="bar">
        <a class="ghost" href={link(['c', id], { b: branch, m: message })} aria-label="Back to the conversation"><Icon name="back" /></a>
        <h1 class="ell">Part {number} of a message</h1>
        <span class="t3 s num">{count(lines.value.filter((l) => l.number).length)} lines{state.current.done ? '' : ' and more'}</span>
      </header>
      {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
      <Rows rows={lines.value} label="Lines" height={() => 19} onEnd={() => void more()}>
        {(l) => <div class="line"><span class="t3 num">{l.number}</span><code>{visible(l.text)}</code></div>}
      </Rows>
    </>
  );
}
