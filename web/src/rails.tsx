// The drawing beside the rows of the branches: rails, the connectors to their parents, and the scale above them.
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useMemo } from 'preact/hooks';
import { details, detailKey } from './branchdata';
import { count, dateOf, timeOf } from './text';
import { draw, ticks, type Rail, type Row, type Span, type Stem } from './tree';

const corner = 10;

interface PlotProps {
  rows: Row[];
  first: number;
  last: number;
  span: Span;
  x: (v: number) => number;
  place: { left: number; width: number };
  live: string | undefined;
  range: [number, number];
  time: boolean;
  context: string;
}

export function Plot({ rows, first, last, span, x, place, live, range, time, context }: PlotProps) {
  const d = useMemo(() => draw(rows, first, last, span, x), [rows, first, last, span, x]);
  const from = rows[first]?.top ?? 0;
  const end = rows[last];
  const height = (end ? end.top + end.height : 0) - from;
  const shift = (y: number) => y - from;
  const stem = (s: Stem) => (
    <path key={s.key} class={lineClass(s) + (s.passes ? ' by' : '')}
      d={`M${px(s.x)} ${Math.max(shift(s.y0), -8)}V${Math.min(shift(s.y1), height + 8)}`} />
  );
  const rail = (r: Rail) => (
    <path key={r.key} class={lineClass(r)}
      d={`M${px(r.x0)} ${r.stem ? `${shift(r.y) - corner}q0 ${corner} ${corner} ${corner}` : shift(r.y)}H${px(r.x1)}`} />
  );
  const marks = rows.slice(first, last + 1).flatMap((row) => {
    const n = row.node;
    const breaks = n && !time ? details.value.get(detailKey(context, n))?.breaks ?? [] : [];
    return breaks.map((at) => <path key={row.key + at} class="brk" d={`M${px(x(at))} ${shift(row.top + row.height / 2) - 7}v14`} />);
  });
  const names = new Map(rows.slice(first, last + 1).map((r) => [r.key, r.node?.name]));
  return (
    <svg class="plot" aria-hidden="true" width={place.width} height={height} style={{ left: place.left + 'px', top: from + 'px' }}>
      {ticks(range[0], range[1], place.width, time).map((v) => <path key={'g' + v} class="grid" d={`M${px(x(v))} 0V${height}`} />)}
      {d.stems.filter((s) => !s.active).map(stem)}
      {d.rails.filter((r) => r.beyond > 0).map((r) => (
        <path key={'b' + r.key} class={`ln dashed ${r.colour}`} d={`M${px(r.x1)} ${shift(r.y)}H${px(r.beyond)}`} />
      ))}
      {d.rails.filter((r) => !r.active).map(rail)}
      {d.stems.filter((s) => s.active).map(stem)}
      {d.rails.filter((r) => r.active).map(rail)}
      {marks}
      {d.rails.flatMap((r) => r.dots.map((at) => (
        <path key={r.key + at} class={`ln thin ${r.colour}`} d={`M${px(at)} ${shift(r.y) - 5}v10`} />
      )))}
      {d.rails.map((r) => (r.dots.length > 0 ? null : (
        <g key={'e' + r.key} class={r.colour}>
          {names.get(r.key) === live && live !== undefined && r.active && <circle class="halo" cx={px(r.x1)} cy={shift(r.y)} r="9" />}
          <circle class="end" cx={px(r.x1)} cy={shift(r.y)} r={r.active ? 5 : 4} />
        </g>
      )))}
      {d.forks.map((f) => (f.count === 1
        ? <circle key={`f${f.x} ${f.y}`} class={`fork ${f.colour}`} cx={px(f.x)} cy={shift(f.y)} r="4" />
        : (
          <g key={`f${f.x} ${f.y}`} class={f.colour}>
            <rect class="fork" x={px(f.x) - pill(f.count) / 2} y={shift(f.y) - 8} width={pill(f.count)} height="16" rx="8" />
            <text x={px(f.x)} y={shift(f.y) + 3.5}>{f.count}</text>
          </g>
        )))}
    </svg>
  );
}

const px = (v: number): number => Math.round(v * 2) / 2;
const pill = (count: number): number => 8 + 7 * String(count).length;
const lineClass = (l: { colour: string; dashed: boolean; active: boolean }): string =>
  `ln ${l.colour}${l.dashed ? ' dashed' : ''}${l.active ? ' wide' : ''}`;

/** The scale. Dragging along it zooms to what the pointer covers. */
export function Axis({ place, range, width, x, time, zoom }: {
  place: RefObject<HTMLDivElement | null>; range: [number, number]; width: number; x: (v: number) => number; time: boolean;
  zoom: (to: [number, number] | undefined) => void;
}) {
  const drag = useSignal<[number, number] | undefined>(undefined);
  const at = (e: PointerEvent) => Math.max(0, Math.min(width, e.clientX - (place.current?.getBoundingClientRect().left ?? 0)));
  const value = (px: number) => range[0] + ((px - 8) / Math.max(1, width - 22)) * (range[1] - range[0]);
  const finish = () => {
    const d = drag.value;
    drag.value = undefined;
    if (!d || Math.abs(d[1] - d[0]) < 8) return;
    const [a, b] = [value(Math.min(...d)), value(Math.max(...d))];
    if (b - a > (time ? 1000 : 2)) zoom([Math.max(range[0], a), Math.min(range[1], b)]);
  };
  const all = ticks(range[0], range[1], width, time);
  return (
    <div class="axis num" ref={place} title="Drag to zoom, 0 resets"
      onPointerDown={(e) => { e.currentTarget.setPointerCapture(e.pointerId); drag.value = [at(e), at(e)]; }}
      onPointerMove={(e) => { if (drag.value) drag.value = [drag.value[0], at(e)]; }}
      onPointerUp={finish} onPointerCancel={() => { drag.value = undefined; }}>
      {width > 0 && all.map((v) => (
        <span key={v} style={{ left: x(v) + 'px' }}>{time ? timeText(new Date(v)) : count(v)}</span>
      ))}
      {drag.value && <i style={{ left: Math.min(...drag.value) + 'px', width: Math.abs(drag.value[1] - drag.value[0]) + 'px' }} />}
    </div>
  );
}

const timeText = (at: Date): string => (at.getHours() + at.getMinutes() === 0 ? dateOf(at) : timeOf(at.toISOString()));

export function Legend() {
  return (
    <div class="blegend" aria-hidden="true">
      <span><svg width="26" height="12"><path class="ln" d="M0 6H26" /><circle class="fork" cx="13" cy="6" r="3.5" /></svg>fork point</span>
      <span><svg width="26" height="12"><path class="ln" d="M0 6H20" /><circle class="end" cx="20" cy="6" r="4" /></svg>end</span>
      <span><svg width="26" height="12"><path class="ln" d="M0 6H26" /><path class="brk" d="M13 0v12" /></svg>compaction</span>
      <span><svg width="26" height="12"><path class="ln dashed" d="M0 6H26" /></svg>no branch shows it any more</span>
      <span class="sp" />
      <span>Drag along the scale to zoom</span>
    </div>
  );
}
