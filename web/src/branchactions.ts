// What the page can change about branches, each with a way to take it back.
import { get, post, remove, segment, type Branch } from './api';
import { pathOf } from './branchdata';
import { offer } from './undo';
import { count } from './text';
import type { Node } from './tree';

interface Restored {
  branch?: string;
}

const restored = (item: string) => post<Restored>(`/trash/${segment(item)}/restore`, undefined);

export class Actions {
  constructor(readonly context: string, readonly reload: (selected?: string) => Promise<void>) {}

  /** Does something and shows what came of it, whatever that is. */
  private async change(f: () => Promise<unknown>, selected?: string): Promise<void> {
    try {
      await f();
    } finally {
      await this.reload(selected);
    }
  }

  private switch = (name: string) => post(pathOf(this.context, name) + '/switch', undefined);
  private renamed = (from: string, to: string) => post(pathOf(this.context, from) + '/rename', { name: to });

  async makeActive(b: Branch, before: string | undefined): Promise<void> {
    await this.change(() => this.switch(b.name));
    if (before !== undefined) offer(`New messages go to ${b.name}, not to ${before}`, () => this.change(() => this.switch(before)));
  }

  async rename(b: Branch, name: string): Promise<void> {
    await this.change(() => this.renamed(b.name, name), name);
    offer(`Renamed ${b.name} to ${name}`, () => this.change(() => this.renamed(name, b.name), b.name));
  }

  async fork(b: Branch, name: string, at: number): Promise<void> {
    await this.change(() => post(`/contexts/${segment(this.context)}/branches`, { name, from: b.name, at }), name);
    offer(`Forked ${name} from ${b.name} at ${count(at)}`, () => this.change(() => remove(pathOf(this.context, name)), b.name));
  }

  async remove(b: Branch): Promise<void> {
    await this.change(() => remove(pathOf(this.context, b.name)));
    offer(`Moved ${b.name} to the trash`, () => this.change(() => restored(b.line), b.name));
  }

  async rewind(b: Branch, to: number): Promise<void> {
    await this.change(() => post(pathOf(this.context, b.name) + '/rewind', { to }));
    offer(`Rewound ${b.name} to ${count(to)} messages`, () => this.change(() => this.unwind(b, to), b.name));
  }

  /** Gives a rewound branch the line back that it had. It comes back with another name, and then takes the old one. */
  private async unwind(b: Branch, to: number): Promise<void> {
    const { branch } = await restored(b.line);
    if (!branch || branch === b.name) return;
    const now = await this.branch(b.name);
    if (now?.messages !== to) throw new Error(`${b.name} has changed since. The messages are in the branch ${branch}.`);
    await post(`/contexts/${segment(this.context)}/commit`, {
      changes: [
        ...(now.active ? [{ op: 'switch', branch }] : []), { op: 'remove_branch', branch: b.name }, { op: 'rename', branch, name: b.name },
      ],
    });
  }

  private async branch(name: string): Promise<Branch | undefined> {
    return get<Branch>(pathOf(this.context, name)).catch(() => undefined);
  }

  async restore(n: Node): Promise<void> {
    if (!n.removed) return;
    const { branch } = await restored(n.removed.item);
    await this.reload(branch);
    if (branch) offer(`Restored the branch ${branch}`, () => this.change(() => remove(pathOf(this.context, branch))));
  }
}
