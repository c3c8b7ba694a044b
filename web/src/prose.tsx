// The text of an answer.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type * as Markdown from './markdown';
import { size, visible } from './text';

let markdown: typeof Markdown | undefined;

interface Props {
  text: string;
  tail: string | undefined;
  bytes: number;
  /** The address of the whole text. */
  whole?: string | undefined;
}

/** An answer: as it is at first, and where it is too long, too deep or too slow; else as Markdown. */
export function Prose({ text, tail, bytes, whole }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [made, setMade] = useState(() => markdown?.ready(text)?.html);
  const [waits, setWaits] = useState(() => !markdown?.ready(text));
  useLayoutEffect(() => {
    if (box.current && made) markdown?.fill(box.current, made);
  }, [made]);
  useLayoutEffect(() => {
    let current = true;
    const draw = async () => {
      markdown ??= await import('./markdown');
      const known = markdown.ready(text);
      const html = known ? known.html : await markdown.html(text);
      if (!current) return;
      setMade(html);
      setWaits(false);
    };
    void draw();
    return () => {
      current = false;
    };
  }, [text]);
  return (
    <div class="prose" dir="auto" data-waits={waits || undefined}>
      {made ? <div class="md" ref={box} /> : <div class="said">{visible(text)}</div>}
      {tail && <p class="t3">… {size(bytes - text.length - tail.length)} left out … {whole && <a class="link" href={whole}>Open all {size(bytes)}</a>}</p>}
      {tail && <p class="said">{visible(tail)}</p>}
    </div>
  );
}
