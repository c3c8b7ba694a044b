// What can be done to a context. Each says what it changes, and can be taken back.
import { get, patch, post, remove, segment, type Branch, type Context, type Turn } from './api';
import { ask } from './dialog';
import { link, go } from './route';
import { T } from './text';
import { offer } from './undo';

interface Trashed {
  item: string;
}

const contextOf = (id: string): string => '/contexts/' + segment(id);

export const restore = (item: string): Promise<unknown> => post(`/trash/${segment(item)}/restore`, {});

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

export function label(c: Context, done: () => void): void {
  ask({
    title: 'Set a label',
    text: <>A label without a value is removed. {Object.keys(c.labels ?? {}).length > 0 && <>Now: <T s={Object.entries(c.labels ?? {}).map(([k, v]) => `${k}=${v}`).join(', ')} /></>}</>,
    field: { label: 'Name=value', value: '' },
    button: 'Set',
    run: async (text) => {
      const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(text) ?? [];
      if (!name) throw new Error('Write a name, an equals sign, and a value.');
      const before = c.labels?.[name] ?? null;
      await patch(contextOf(c.id), { labels: { [name]: value || null } });
      done();
      offer(value ? `Label ${name} set` : `Label ${name} removed`, async () => {
        await patch(contextOf(c.id), { labels: { [name]: before } });
        done();
      });
    },
  });
}

/** Moves contexts to the trash; the page then shows the Library. */
export function trash(c: Context): void {
  ask({
    title: 'Move the conversation to the trash?',
    text: <>“<T s={c.title || 'Untitled'} />” and its branches. It can be restored until the trash is emptied.</>,
    button: 'Move to the trash',
    run: async () => {
      const item = await remove<Trashed>(contextOf(c.id));
      go('/');
      if (item) {
        offer('Moved to the trash', async () => {
          await restore(item.item);
          go(link(['c', c.id]));
        });
      }
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

export const reload = (id: string): Promise<[Context, { branches: Branch[] }]> =>
  Promise.all([get<Context>(contextOf(id)), get<{ branches: Branch[] }>(contextOf(id) + '/branches')]);
