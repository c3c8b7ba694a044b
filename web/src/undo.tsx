// What was done last, and can be taken back.
import { signal } from '@preact/signals';
import { T } from './text';

interface Offer {
  text: string;
  undo?: () => Promise<void>;
}

const patience = 10_000; // ms
const glance = 2500; // ms
export const offered = signal<Offer | undefined>(undefined);
const failed = signal('');
let timer = 0;

/** Says what was done, and offers to take it back. */
export function offer(text: string, undo: () => Promise<void>): void {
  clearTimeout(timer);
  failed.value = '';
  offered.value = { text, undo };
  timer = window.setTimeout(() => { offered.value = undefined; }, patience);
}

/** Copies a text, and says so. */
export function copy(text: string, what: string): void {
  void navigator.clipboard?.writeText(text).then(() => {
    clearTimeout(timer);
    failed.value = '';
    offered.value = { text: what + ' copied' };
    timer = window.setTimeout(() => { offered.value = undefined; }, glance);
  });
}

export async function undo(): Promise<void> {
  const o = offered.value;
  if (!o?.undo) return;
  clearTimeout(timer);
  try {
    await o.undo();
    offered.value = undefined;
  } catch (e) {
    failed.value = e instanceof Error ? e.message : String(e);
  }
}

export function Undo() {
  const o = offered.value;
  if (!o) return null;
  return (
    <div class="undo" role="status">
      <T s={o.text} />
      {failed.value && <span class="del" role="alert"><T s={failed.value} /></span>}
      {o.undo && <button class="link" onClick={() => void undo()}>Undo</button>}
    </div>
  );
}
