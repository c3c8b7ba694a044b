import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, type Turn, type Turns } from './api';
import { counted, count, T, timeOf } from './text';

/** The turns of a branch, with a filter on their prompts: all turns, not the loaded ones. */
export function Navigator({ path, turns: all, reading, jump }: { path: string; turns: number; reading: number; jump: (t: Turn) => void }) {
  const turns = useSignal<Turn[]>([]);
  const filter = useSignal('');
  const list = useRef<HTMLOListElement>(null);
  const inside = useRef(false);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const q = filter.value ? { q: filter.value, limit: 100 } : { at: Math.max(0, reading - 1), limit: 60 };
      const from = turns.value[0]?.from ?? 0;
      const to = turns.value[turns.value.length - 1]?.to ?? 0;
      if (!filter.value && reading >= from && reading < to && turns.value.length > 1) return;
      const ask = filter.value ? get<Turns>(path + '/turns', q, abort.signal) : around(path, reading, abort.signal);
      ask.then((got) => {
        turns.value = got.turns;
      }, () => undefined);
    }, filter.value ? 120 : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, filter.value, reading, all]);
  const current = turns.value.find((t) => reading >= t.from && reading < t.to);
  useEffect(() => {
    if (!inside.current) list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [current?.number]);
  return (
    <div class="nlist">
      <label class="nfil">
        <span class="vh">Filter prompts</span>
        <input type="search" placeholder="Filter prompts" value={filter.value} onInput={(e) => { filter.value = e.currentTarget.value; turns.value = []; }} />
      </label>
      <ol class="scroll" ref={list} onPointerEnter={() => { inside.current = true; }} onPointerLeave={() => { inside.current = false; }}>
        {turns.value.map((t) => (
          <li key={t.number}>
            <button class="nt" aria-current={t === current ? 'true' : undefined} onClick={() => jump(t)}>
              <span class="no num">{t.number || ''}</span>
              <T class="p" s={t.prompt || (t.number ? 'A prompt without text' : 'Before the first prompt')} />
              <span class="mm num">
                <span>{timeOf(t.at)}</span>
                {t.added + t.removed > 0 && <span><span class="add">+{count(t.added)}</span> <span class="del">−{count(t.removed)}</span></span>}
                {t.failed > 0 && <span class="del">{count(t.failed)} failed</span>}
                {t.breaks > 0 && <span>compacted</span>}
              </span>
            </button>
          </li>
        ))}
        {filter.value && turns.value.length === 0 && <li class="t3 s pad">No prompt begins with these words</li>}
      </ol>
      <p class="t3 s pad num">{counted(all, 'turn')}</p>
    </div>
  );
}

async function around(path: string, position: number, abort: AbortSignal): Promise<Turns> {
  const here = await get<Turns>(path + '/turns', { at: position, limit: 1 }, abort);
  const number = here.turns[0]?.number ?? 0;
  return get<Turns>(path + '/turns', { from: Math.max(0, number - 30), limit: 80 }, abort);
}
