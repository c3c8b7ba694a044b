// What a person has opened and closed. It stays while the tab is open, also where the text has left the window.
import { signal, type Signal } from '@preact/signals';

const most = 4000;
const folds = new Map<string, Signal<boolean | undefined>>();

/** Whether something was opened (true) or closed (false) by hand. */
export function fold(key: string): Signal<boolean | undefined> {
  let f = folds.get(key);
  if (!f) {
    if (folds.size >= most) folds.delete(folds.keys().next().value as string);
    f = signal<boolean | undefined>(undefined);
    folds.set(key, f);
  }
  return f;
}
