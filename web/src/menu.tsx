// A button that opens a list of things to do.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from './icons';

export interface Choice {
  title: string;
  danger?: boolean;
  run: () => void;
}

export function Menu({ label, choices }: { label: string; choices: Choice[] }) {
  const open = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open.value) return;
    const close = (e: Event) => {
      if (!box.current?.contains(e.target as Node)) open.value = false;
    };
    addEventListener('pointerdown', close);
    box.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    return () => removeEventListener('pointerdown', close);
  }, [open.value]);
  const onKeyDown = (e: KeyboardEvent) => {
    const items = [...(box.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    if (e.key === 'Escape' && open.value) {
      open.value = false;
      box.current?.querySelector('button')?.focus();
    } else if (e.key === 'ArrowDown' && open.value) items[(at + 1) % items.length]?.focus();
    else if (e.key === 'ArrowUp' && open.value) items[(at - 1 + items.length) % items.length]?.focus();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="menu" ref={box} onKeyDown={onKeyDown}>
      <button class="ghost" aria-haspopup="menu" aria-expanded={open.value} aria-label={label} onClick={() => { open.value = !open.value; }}>
        <Icon name="dots" />
      </button>
      {open.value && (
        <div class="choices" role="menu" aria-label={label}>
          {choices.map((c) => (
            <button role="menuitem" class={c.danger ? 'del' : ''} tabIndex={-1} onClick={() => { open.value = false; c.run(); }}>{c.title}</button>
          ))}
        </div>
      )}
    </div>
  );
}
