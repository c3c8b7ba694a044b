// A list of rows of known heights: only those in view are in the document.
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';

interface Props<R> {
  rows: R[];
  label: string;
  height: (row: R) => number;
  children: (row: R) => ComponentChildren;
  onEnd?: () => void;
  open?: (row: R) => void;
  mark?: (row: R) => void;
  marked?: (row: R) => boolean;
}

export function Rows<R extends { key: string; kind?: string }>({ rows, label, height, children, onEnd, open, mark, marked }: Props<R>) {
  const scroll = useRef<HTMLDivElement>(null);
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const [at, setAt] = useState(-1);
  const options = {
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: (i: number) => { const r = rows[i]; return r ? height(r) : 40; },
    getItemKey: (i: number) => rows[i]?.key ?? i,
    overscan: 10,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => draw(0),
  };
  const [list] = useState(() => new Virtualizer<HTMLDivElement, Element>(options));
  list.setOptions(options);
  useLayoutEffect(() => list._didMount(), []);
  useLayoutEffect(() => {
    list._willUpdate();
    list.measure();
  }, [rows]);
  const items = list.getVirtualItems();
  const last = items[items.length - 1]?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 30) onEnd?.();
  }, [last, rows.length]);

  const move = (to: number, by: number) => {
    while (to >= 0 && to < rows.length && rows[to]?.kind === 'group') to += by;
    if (to < 0 || to >= rows.length) return;
    setAt(to);
    list.scrollToIndex(to, { align: 'auto' });
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.metaKey || e.ctrlKey || e.altKey) return;
    const by: Record<string, [number, number]> = {
      j: [at + 1, 1], ArrowDown: [at + 1, 1], k: [at - 1, -1], ArrowUp: [at - 1, -1], Home: [0, 1], End: [rows.length - 1, -1],
      PageDown: [Math.min(at + 15, rows.length - 1), 1], PageUp: [Math.max(at - 15, 0), -1],
    };
    const step = by[e.key];
    const row = rows[at];
    if (step) move(...step);
    else if ((e.key === 'Enter' || e.key === 'o') && row && open) open(row);
    else if (e.key === 'x' && row && mark) mark(row);
    else return;
    e.preventDefault();
  };
  // The group of the first row in view stays on top.
  const first = items.find((i) => i.end > (list.scrollOffset ?? 0))?.index ?? 0;
  let head = first;
  while (head > 0 && rows[head]?.kind !== 'group') head--;
  const stuck = rows[head]?.kind === 'group' ? rows[head] : undefined;
  return (
    <div class="scroll" ref={scroll} tabIndex={0} role="grid" aria-label={label} onKeyDown={onKeyDown}
      aria-activedescendant={at >= 0 ? 'row-' + at : undefined}>
      {stuck && <div class="stuck" role="presentation">{children(stuck)}</div>}
      <div class="tall" style={{ height: list.getTotalSize() + 'px' }}>
        {items.map((item) => {
          const row = rows[item.index];
          return row && (
            <div key={item.key as string} id={'row-' + item.index} class={'at' + (item.index === at ? ' sel' : '') + (marked?.(row) ? ' chosen' : '')} role="row"
              aria-selected={row.kind === 'group' ? undefined : (marked ? marked(row) : item.index === at)} style={{ transform: `translateY(${item.start}px)`, height: item.size + 'px' }}>
              <div role={row.kind === 'group' ? 'columnheader' : 'gridcell'}>{children(row)}</div>
            </div>
          );
        })}
      </div>
    </div>
  );
}
