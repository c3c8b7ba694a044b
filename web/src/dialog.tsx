// Dialogs. The browser's own: it holds the focus inside, closes with Escape, and gives the focus back.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface Props {
  title: string;
  wide?: boolean;
  bare?: boolean; // without a heading that can be seen
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, wide, bare, onClose, children }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={box} class={wide ? 'wide' : bare ? 'bare' : ''} aria-label={title} onClose={onClose}
      onClick={(e) => { if (e.target === box.current) box.current?.close(); }}>
      <div class="inner">
        {!bare && <h2>{title}</h2>}
        {children}
      </div>
    </dialog>
  );
}

interface Question {
  title: string;
  text: ComponentChildren;
  button: string;
  field?: { label: string; value: string };
  run: (value: string) => Promise<void>;
}

const question = signal<Question | undefined>(undefined);
const busy = signal(false);
const failed = signal('');

/** Asks before something is done, and stays open until it is done. */
export function ask(q: Question): void {
  failed.value = '';
  question.value = q;
}

export function Asked() {
  const q = question.value;
  if (!q) return null;
  const close = () => { question.value = undefined; };
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const value = String(new FormData(e.target as HTMLFormElement).get('value') ?? '');
    busy.value = true;
    try {
      await q.run(value);
      if (question.value === q) close();
    } catch (err) {
      failed.value = err instanceof Error ? err.message : String(err);
    }
    busy.value = false;
  };
  return (
    <Dialog title={q.title} onClose={close}>
      <form onSubmit={submit} class="ask">
        <div class="t2">{q.text}</div>
        {q.field && (
          <label>
            <span class="s t2">{q.field.label}</span>
            <input name="value" defaultValue={q.field.value} autofocus spellcheck={false} autocomplete="off" maxLength={1000} />
          </label>
        )}
        {failed.value && <p role="alert" class="del">{failed.value}</p>}
        <div class="buttons">
          <button type="button" class="btn" onClick={close}>Cancel</button>
          <button class="btn pri" disabled={busy.value} autofocus={!q.field}>{q.button}</button>
        </div>
      </form>
    </Dialog>
  );
}
