// The store that the page shows.
import { computed, signal } from '@preact/signals';
import { get, offline, type Store } from './api';

export const store = signal<Store | undefined>(undefined);

/** Whether the page may offer changes: the server answers 403 whatever the page does. */
export const writable = computed(() => !!store.value && !store.value.read_only && !offline.value);

export async function load(): Promise<void> {
  try {
    store.value = await get<Store>('/store');
  } catch {
    // The next connection asks again.
  }
}
