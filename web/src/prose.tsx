// The text of an answer.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { size, visible } from './text';

let write: ((el: HTMLElement, text: string) => boolean) | undefined;
const loading = () => import('./markdown').then((m) => { write = m.write; });

interface Props {
  text: string;
  tail: string | undefined;
  bytes: number;
  /** The address of the whole text. */
  whole?: string | undefined;
}

/** An answer, as Markdown, or as it is until that is loaded, and where it is too long or too deep. */
export function Prose({ text, tail, bytes, whole }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [plain, setPlain] = useState(false);
  useLayoutEffect(() => {
    let current = true;
    const draw = () => {
      if (current && box.current && write && !write(box.current, text)) setPlain(true);
    };
    if (write) draw();
    else void loading().then(draw);
    return () => {
      current = false;
    };
  }, [text]);
  return (
    <div class="prose" dir="auto">
      {plain ? <div class="said">{visible(text)}</div> : <div class="md" ref={box} />}
      {tail && <p class="t3">… {size(bytes - text.length - tail.length)} left out … {whole && <a class="link" href={whole}>Open all {size(bytes)}</a>}</p>}
      {tail && <p class="said">{visible(tail)}</p>}
    </div>
  );
}

