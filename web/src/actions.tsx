// What can be done to a context. Each says what it changes, and can be taken back.
import { get, patch, post, remove, segment, type Branch, type Context, type Turn } from './api';
import { ask } from './dialog';
import { link, go } from './route';
import { counted, T } from './text';
import { offer } from './undo';

interface Trashed {
  item: string;
}

const contextOf = (id: string): string => '/contexts/' + segment(id);

export const restore = (item: string): Promise<unknown> => post(`/trash/${segment(item)}/restore`, undefined);

export function rename(c: Context, done: () => void): void {
  ask({
    title: 'Rename the conversation',
    text: null,
    field: { label: 'Title', value: c.title },
    button: 'Rename',
    run: async (title) => {
      await patch(contextOf(c.id), { title });
      done();
      offer('Renamed', async () => {
        await patch(contextOf(c.id), { title: c.title });
        done();
      });
    },
  });
}

/** Sets a label of contexts. */
export function labelAll(all: Context[], done: () => void): void {
  const now = all.length === 1 ? Object.entries(all[0]?.labels ?? {}).map(([k, v]) => `${k}=${v}`).join(', ') : '';
  ask({
    title: 'Set a label',
    text: <>A label without a value is removed. {now && <>Now: <T s={now} /></>}</>,
    field: { label: 'Name=value', value: '' },
    button: 'Set',
    run: async (text) => {
      const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(text) ?? [];
      if (!name) throw new Error('Write a name, an equals sign, and a value.');
      for (const c of all) await patch(contextOf(c.id), { labels: { [name]: value || null } });
      done();
      offer(value ? `Label ${name} set` : `Label ${name} removed`, async () => {
        for (const c of all) await patch(contextOf(c.id), { labels: { [name]: c.labels?.[name] ?? null } });
        done();
      });
    },
  });
}

/** Moves a context to the trash; the page then shows the Library. */
export const trash = (c: Context): void => trashAll([c], () => go('/'), () => go(link(['c', c.id])));

/** Moves contexts to the trash. */
export function trashAll(all: Context[], done: () => void, undone = done): void {
  const one = all.length === 1 ? all[0] : undefined;
  ask({
    title: one ? 'Move the conversation to the trash?' : `Move ${counted(all.length, 'conversation')} to the trash?`,
    text: <>{one && <>“<T s={one.title || 'Untitled'} />” and its branches. </>}Nothing is lost until the trash is emptied.</>,
    button: 'Move to the trash',
    run: async () => {
      const items: string[] = [];
      for (const c of all) {
        const item = await remove<Trashed>(contextOf(c.id));
        if (item) items.push(item.item);
      }
      done();
      offer('Moved to the trash', async () => {
        for (const item of items) await restore(item);
        undone();
      });
    },
  });
}

/** Forks a branch behind a turn. */
export function forkBehind(c: Context, branch: string, t: Turn, branches: Branch[], done: () => Promise<void>): void {
  let n = 2;
  const taken = new Set(branches.map((b) => b.name));
  while (taken.has(`${branch}-${n}`)) n++;
  ask({
    title: `Fork behind turn ${t.number}`,
    text: `The new branch has the first ${t.to} messages. Nothing is copied, and this branch stays as it is.`,
    field: { label: 'Name of the branch', value: `${branch}-${n}` },
    button: 'Fork',
    run: async (name) => {
      const made = await post<Branch>(contextOf(c.id) + '/branches', { name, from: branch, at: t.to });
      await done();
      go(link(['c', c.id], { b: made.name }));
      offer(`Forked as ${made.name}`, async () => {
        await remove(`${contextOf(c.id)}/branches/${segment(made.name)}`);
        await done();
        go(link(['c', c.id], { b: branch }));
      });
    },
  });
}

/** A context and its branches; of one branch the context says all. */
export async function reload(id: string): Promise<[Context, Branch[]]> {
  const c = await get<Context>(contextOf(id));
  if (c.branches === 1) return [c, [{ name: c.active_branch, line: '', messages: c.messages, bytes: c.bytes, active: true }]];
  return [c, (await get<{ branches: Branch[] }>(contextOf(id) + '/branches')).branches];
}
