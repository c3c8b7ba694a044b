// Two conversations beside each other: turns of the same number in one row, or each in a column of its own.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Cell, Side } from './comparedata';
import { Icon } from './icons';
import { live } from './live';
import { link } from './route';
import { count, counted, T } from './text';
import { TurnView } from './turn';

export interface ColumnsHandle {
  step: (by: number) => void;
  at: () => number; // the turn that is read
}

interface Props {
  sides: [Side, Side];
  colours: [string, string];
  show: 'l' | 'r'; // on a narrow page
  first: number;
  tied: boolean;
  handle: { current: ColumnsHandle | undefined };
  start: number; // the turn to begin with, if it is read already
  top: ComponentChildren;
}

const ahead = 1500; // pixels that are read before they are seen
const far = 3000; // pixels from what is seen, where rows are empty

export function Columns({ sides, colours, show, first, tied, handle, start, top }: Props) {
  const failed = useSignal('');
  const busy = useRef(false);
  const boxes = [useRef<HTMLDivElement>(null), useRef<HTMLDivElement>(null)] as const;
  const [l, r] = sides;
  // What is read of either side draws both again.
  const cells = [l.cells.value, r.cells.value] as const;
  const reach = reachOf(sides);

  /** Reads on until there is enough below of what is seen. */
  const fill = async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      for (let i = 0; i < 50; i++) {
        const short = (n: 0 | 1) => {
          const box = boxes[tied ? 0 : n].current;
          return !!box && box.scrollHeight - box.scrollTop - box.clientHeight < ahead;
        };
        const want = sides.filter((s, n) => !s.done.value && short(n as 0 | 1));
        if (want.length === 0) break;
        // Tied, the side that is behind is read first: a row is shown when both sides of it are known.
        const least = Math.min(...want.map((s) => s.next));
        await Promise.all(want.filter((s) => !tied || s.next === least).map((s) => s.read(s.next)));
        failed.value = '';
        await new Promise(requestAnimationFrame);
      }
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
    } finally {
      busy.current = false;
    }
  };
  useEffect(() => {
    if (start > first) {
      for (const box of boxes) {
        const row = box.current?.querySelector<HTMLElement>(`[data-turn="${start}"]`);
        if (box.current && row) box.current.scrollTop += row.getBoundingClientRect().top - edgeOf(box.current);
      }
    }
    void fill();
  }, [sides]);
  handle.current = {
    step: (by) => {
      for (const box of boxes) {
        const el = box.current;
        if (!el) continue;
        const edge = edgeOf(el);
        const rows = [...el.querySelectorAll<HTMLElement>('.cpair')].map((x) => x.getBoundingClientRect().top - edge);
        const next = by > 0 ? rows.find((y) => y > 4) : rows.findLast((y) => y < -4);
        if (next !== undefined) el.scrollTop += next;
        else if (by < 0) el.scrollTop = 0;
      }
    },
    at: () => {
      const el = boxes[show === 'r' && !tied ? 1 : 0].current;
      if (!el || el.scrollTop < 40) return 0;
      const row = [...el.querySelectorAll<HTMLElement>('[data-turn]')].find((x) => x.getBoundingClientRect().bottom > edgeOf(el) + 20);
      return Number(row?.dataset['turn'] ?? 0);
    },
  };
  const problem = failed.value && (
    <p class="gap bad pad" role="alert"><T s={failed.value} /> <button class="link" onClick={() => void fill()}>Try again</button></p>
  );
  const heads = sides.map((s, n) => <Head key={s.branch.name} s={s} colour={colours[n] ?? 'r1'} n={n} />);
  const part = <div class={`cpart ${colours[0]}`} aria-hidden="true"><i class={colours[1]} /></div>;
  if (!tied) {
    return (
      <div class={`cmps untied show-${show}`}>
        {sides.map((s, n) => (
          <div key={s.branch.name} class={`scroll cmp ${n === 0 ? 'cl' : 'cr'} ${colours[n]}`} ref={boxes[n as 0 | 1]} tabIndex={0}
            aria-label={n === 0 ? 'Left' : 'Right'} onScroll={() => void fill()}>
            {n === 0 && top}
            {n === 1 && <div class="common t3">After the fork</div>}
            <div class="cheads">{heads[n]}</div>
            {numbers(s.first, s.next - 1).map((no) => {
              const c = cells[n as 0 | 1].get(no);
              return c && <PairRow key={no} no={no}>{() => <CellView c={c} s={s} />}</PairRow>;
            })}
            <End s={s} />
            {problem}
          </div>
        ))}
      </div>
    );
  }
  return (
    <div class={`scroll cmps tied show-${show}`} ref={boxes[0]} tabIndex={0} aria-label="Both branches" onScroll={() => void fill()}>
      {top}
      {part}
      <div class="cheads">{heads}</div>
      {numbers(first, reach).map((no) => (
        <PairRow key={no} no={no}>
          {() => sides.map((s, n) => {
            const c = cells[n as 0 | 1].get(no);
            return (
              <div key={n} class={`cmp ${n === 0 ? 'cl' : 'cr'} ${colours[n]}`}>
                {c ? <CellView c={c} s={s} />
                  : s.first > no ? <p class="cend t3 s"><T s={s.branch.name} /> goes on with turn {count(s.first)}</p>
                  : s.done.value && no === Math.max(s.next, first) && <End s={s} />}
              </div>
            );
          })}
        </PairRow>
      ))}
      <div class="cpair">
        {sides.map((s, n) => (
          <div key={n} class={`cmp ${n === 0 ? 'cl' : 'cr'} ${colours[n]}`}>
            {s.done.value ? Math.max(s.next, first) > reach && <End s={s} /> : <div class="skeleton" aria-busy="true"><i /><i /></div>}
          </div>
        ))}
      </div>
      {problem}
    </div>
  );
}

/** Where what is read begins: below the names of the branches. */
const edgeOf = (box: HTMLElement): number => box.getBoundingClientRect().top + (box.querySelector('.cheads')?.clientHeight ?? 0);

/** The last turn of which both sides are known. */
function reachOf(sides: [Side, Side]): number {
  const open = sides.filter((s) => !s.done.value).map((s) => s.next - 1);
  return open.length > 0 ? Math.min(...open) : Math.max(...sides.map((s) => s.next - 1));
}

function numbers(from: number, to: number): number[] {
  return to < from ? [] : Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** A row of turns. One that is far from what is seen is an empty box of its height. */
function PairRow({ no, children }: { no: number; children: () => ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const height = useSignal(0); // 0 while it is near
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const watch = new IntersectionObserver(([e]) => {
      if (e) height.value = e.isIntersecting ? 0 : e.boundingClientRect.height;
    }, { root: el.closest('.scroll'), rootMargin: `${far}px 0px` });
    watch.observe(el);
    return () => watch.disconnect();
  }, []);
  return (
    <div ref={box} class="cpair" data-turn={no} style={height.value > 0 ? { height: height.value + 'px' } : undefined}>
      {height.value === 0 && children()}
    </div>
  );
}

function Head({ s, colour, n }: { s: Side; colour: string; n: number }) {
  const t = s.totals.value;
  const own = s.branch.messages - s.from;
  return (
    <div class={`chead ${n === 0 ? 'cl' : 'cr'} ${colour}`}>
      <span class={`rail-dot ${s.branch.active ? 'on' : ''}`} />
      <b class="ell"><T s={s.branch.name} title /></b>
      {s.branch.active && <span class="chip live">active</span>}
      <span class="sp" />
      <span class="num t3 ctot">
        {counted(own, 'message')}
        {t && t.turns > 0 && `, ${t.more ? '≥ ' : ''}${counted(t.turns, 'turn')}`}
      </span>
      {t && t.added + t.removed > 0 && (
        <span class="num">
          {t.about ? '~' : t.more ? '≥ ' : ''}<span class="add">+{count(t.added)}</span> <span class="del">−{count(t.removed)}</span>
        </span>
      )}
    </div>
  );
}

function CellView({ c, s }: { c: Cell; s: Side }) {
  const { id: _, ...turn } = c.turn; // its link would lead here
  const own = { ...turn, from: Math.max(turn.from, s.from) };
  const last = s.done.value && c.turn.number === s.next - 1;
  const here = link(['c', s.context], { b: s.branch.name, ...(c.turn.id && c.turn.from >= s.from ? { m: c.turn.id } : { p: own.from }) });
  const l = live.value.find((x) => x.context === s.context && x.branch === s.branch.name);
  return (
    <div class="ccell">
      <a class="ghost copen" href={here} aria-label={`Open turn ${c.turn.number} in its conversation`} title="Open in its conversation">
        <Icon name="open" />
      </a>
      <TurnView turn={own} messages={c.messages} last={last} live={l} level={2} path={s.path} />
      {c.cut > 0 && <p class="gap"><a class="link" href={here}>Open the turn: {counted(c.cut, 'more message')}</a></p>}
    </div>
  );
}

function End({ s }: { s: Side }) {
  if (!s.done.value) return null;
  const nothing = s.branch.messages <= s.from;
  return <p class="cend t3 s"><T s={s.branch.name} /> {nothing ? 'has nothing after the fork' : `ends here, at ${count(s.branch.messages)}`}</p>;
}
