import type { Signal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import type { BranchMap } from './api';
import type { Reading } from './talk';
import { count } from './text';

const height = 1000; // of the drawing; it is stretched to the height of the window

interface Props {
  map: BranchMap;
  reading: Signal<Reading>;
  jump: (position: number, replace?: boolean) => void;
}

/** The scroll bar of a branch: a rail, ticks of prompts, and what happened, by position. */
export function MiniMap({ map, reading, jump }: Props) {
  const { from, to } = reading.value;
  const box = useRef<HTMLDivElement>(null);
  const waiting = useRef(0);
  const y = (position: number) => (map.length > 0 ? (position / map.length) * height : 0);
  const place = (e: PointerEvent): number => {
    const r = box.current?.getBoundingClientRect();
    return r ? Math.max(0, Math.min(map.length - 1, Math.floor(((e.clientY - r.top) / r.height) * map.length))) : 0;
  };
  const drag = (e: PointerEvent) => {
    if (!(e.buttons & 1)) return;
    clearTimeout(waiting.current);
    waiting.current = window.setTimeout(() => jump(place(e), true), 60);
  };
  // One path for each kind: the browser lays every element of a drawing out anew with the page.
  const ticks = (all: number[], x: number, width: number, c: string) =>
    <path class={c} d={all.map((n, i) => (n > 0 ? `M${x} ${y(i * map.size).toFixed(1)}h${width}v${Math.max(2, Math.min(6, n))}h-${width}z` : '')).join('')} />;
  // While one reads on, only the window moves.
  const marks = useMemo(() => (
    <g>
      {ticks(map.prompts, 5, 10, 'p')}
      {ticks(map.calls, 18, 4, 'c')}
      {ticks(map.edits, 25, 5, 'e')}
      {ticks(map.failures, 31, 5, 'f')}
      <path class="b" d={map.breaks_at.map((at) => `M2 ${y(at).toFixed(1)}H38`).join('')} />
    </g>
  ), [map]);
  const onKeyDown = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.round(map.length / 20));
    const next = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: map.length - 1 }[e.key];
    if (next === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    jump(Math.max(0, Math.min(map.length - 1, next)), true);
  };
  const wheel = (e: WheelEvent) => {
    const talk = document.querySelector('.talk > .scroll');
    if (talk) talk.scrollTop += e.deltaY;
  };
  const span = Math.max(14, y(to + 1) - y(from));
  return (
    <div class="map" ref={box} role="scrollbar" aria-controls="main" aria-label="Place in the branch" aria-orientation="vertical" tabIndex={0} aria-valuemin={0}
      aria-valuemax={map.length} aria-valuenow={from} aria-valuetext={`message ${count(from)} of ${count(map.length)}`} onKeyDown={onKeyDown} onWheel={wheel}
      onPointerDown={(e) => { box.current?.setPointerCapture(e.pointerId); jump(place(e)); }} onPointerMove={drag}>
      <svg viewBox={`0 0 40 ${height}`} preserveAspectRatio="none" aria-hidden="true">
        <rect class="rail" x="9" width="2" y="0" height={height} />
        {marks}
        <rect class="w" x="1" width="38" y={Math.min(y(from), height - span)} height={span} rx="3" />
      </svg>
    </div>
  );
}
