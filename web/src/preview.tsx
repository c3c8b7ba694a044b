// A message inside of its turn, as a hit of a search is shown.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, segment, type Message, type Messages, type Turn } from './api';
import { markWords } from './found';
import { placed, TurnView } from './turn';

interface Props {
  context: string;
  branch: string;
  id: string;
  words: string;
}

interface Shown {
  turn: Turn;
  messages: Message[];
}

export function Preview({ context, branch, id, words }: Props) {
  const shown = useSignal<Shown | undefined>(undefined);
  const box = useRef<HTMLDivElement>(null);
  const path = `/contexts/${segment(context)}/branches/${segment(branch)}`;
  useEffect(() => {
    const abort = new AbortController();
    const load = async () => {
      const got = await get<Messages>(path + '/parts', { around: id, before: 6, after: 12, turns: true }, abort.signal);
      const at = got.messages.find((m) => m.id === id)?.position ?? got.from;
      const turn = got.turns?.find((t) => at >= t.from && at < t.to);
      if (turn) shown.value = { turn, messages: got.messages.filter((m) => m.position >= turn.from && m.position < turn.to) };
    };
    load().catch(() => { if (!abort.signal.aborted) shown.value = undefined; });
    return () => abort.abort();
  }, [path, id]);
  useEffect(() => {
    box.current?.querySelector(placed(id))?.scrollIntoView({ block: 'center' });
    return markWords(box.current, words);
  }, [shown.value, words]);
  const s = shown.value;
  return (
    <div class="scroll preview" ref={box} tabIndex={0} role="region" aria-label="The hit in its turn">
      {s && <div class="turns"><TurnView turn={s.turn} messages={s.messages} last={false} live={undefined} level={2} path={path} show={id} /></div>}
    </div>
  );
}
