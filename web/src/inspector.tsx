// The selected branch: what it is, and what can be done with it.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { get, type Branch } from './api';
import { details, detailKey, want } from './branchdata';
import { Form } from './branchforms';
import { NameOf, when } from './branchtree';
import { Icon } from './icons';
import { link } from './route';
import { count, counted, dateOf, T, timeOf } from './text';
import type { Node } from './tree';

export type Act = 'fork' | 'rename' | 'rewind' | 'remove';

export type Run = (f: () => Promise<void>) => Promise<void>;

export interface Doing {
  active: Branch | undefined;
  readOnly: boolean;
  form: Act | undefined;
  show: (form: Act | undefined) => void;
  makeActive: (b: Branch) => Promise<void>;
  rename: (b: Branch, name: string) => Promise<void>;
  fork: (b: Branch, name: string, at: number) => Promise<void>;
  rewind: (b: Branch, to: number) => Promise<void>;
  remove: (b: Branch) => Promise<void>;
  restore: (n: Node) => Promise<void>;
}

export function Inspector({ context, n, doing, select, close, open }: {
  context: string; n: Node; doing: Doing; select: (n: Node) => void; close: () => void; open: boolean;
}) {
  const b = n.branch;
  const failed = useSignal('');
  const busy = useSignal(false);
  useEffect(() => {
    failed.value = '';
  }, [n.key]);
  const run: Run = async (f) => {
    busy.value = true;
    failed.value = '';
    try {
      await f();
      doing.show(undefined);
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
    } finally {
      busy.value = false;
    }
  };
  return (
    <aside class={open ? 'insp open' : 'insp'} aria-label="Selected branch">
      <div class="ih">
        <span class={`rail-dot ${n.colour}${b?.active ? ' on' : ''}`} />
        <h2><NameOf n={n} /></h2>
        <span class="sp" />
        <button class="ghost iclose" aria-label="Close" onClick={close}><Icon name="close" /></button>
      </div>
      <Facts context={context} n={n} select={select} />
      {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
      {b && doing.form && !doing.readOnly
        ? <Form key={doing.form + n.key} act={doing.form} context={context} n={n} b={b} doing={doing} busy={busy.value} run={run} />
        : <Actions context={context} n={n} doing={doing} run={run} busy={busy.value} />}
    </aside>
  );
}

function Facts({ context, n, select }: { context: string; n: Node; select: (n: Node) => void }) {
  const files = useSignal<{ of: string; count: number; more: boolean } | undefined>(undefined);
  const b = n.branch;
  useEffect(() => {
    want(context, n);
    if (!b || n.own === 0) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get<{ files: { path: string; position: number }[]; next?: string }>('/files', {
        context, branch: b.name, access: 'written', all: true, limit: 1000,
      }, abort.signal).then((got) => {
        const own = got.files.filter((f) => f.position >= n.from);
        files.value = { of: n.key, count: new Set(own.map((f) => f.path)).size, more: !!got.next && own.length === got.files.length };
      }, () => undefined);
    }, 200);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [n.key, b?.messages]);
  const d = details.value.get(detailKey(context, n));
  const changed = files.value?.of === n.key ? files.value : undefined;
  const kids = n.children.filter((c) => c.branch);
  const parent = above(n);
  return (
    <>
      {b && (d?.prompt || d?.answer) && n.own > 0 && <p class={'quote ' + n.colour}><T s={d.prompt || d.answer} /></p>}
      <dl class="kv">
        {parent && n.kind !== 'folded' && (
          <>
            <dt>{n.kind === 'branch' ? 'Forks from' : 'Cut off from'}</dt>
            <dd><Link n={parent} select={select} /> at {count(n.from)}{d && d.turn > 0 && b ? `, turn ${count(d.turn)}` : ''}</dd>
          </>
        )}
        {b && (
          <>
            <dt>Shows</dt>
            <dd class="num">{counted(b.messages, 'message')}, {count(n.own)} of its own{d ? `, ${counted(d.turns, 'turn')}` : ''}</dd>
          </>
        )}
        {b && d?.began && <Fact name="Began">{stamp(d.began)}</Fact>}
        {b && d?.last && <Fact name="Last record">{stamp(d.last)}</Fact>}
        {b && (changed || (d?.sum && d.sum.added + d.sum.removed > 0)) && (
          <>
            <dt>Changed</dt>
            <dd class="num">
              {changed && `${changed.more ? '≥ ' : ''}${counted(changed.count, 'file')} `}
              {d?.sum && d.sum.added > 0 && <span class="add">+{count(d.sum.added)}</span>}{' '}
              {d?.sum && d.sum.removed > 0 && <span class="del">−{count(d.sum.removed)}</span>}
            </dd>
          </>
        )}
        {b && d?.sum && d.sum.failed > 0 && <Fact name="Failed"><span class="del">{counted(d.sum.failed, 'call')}</span></Fact>}
        {d && d.breaks.length > 0 && (
          <Fact name="Compacted">
            at {d.breaks.slice(-4).map(count).join(', ')}
            {d.breaks.length > 4 && ` and ${count(d.breaks.length - 4)} more`}
          </Fact>
        )}
        {n.removed && (
          <>
            {n.own > 0 && <Fact name="Keeps">{counted(n.own, 'message')}, {count(n.removed.first)}–{count(n.removed.end - 1)}</Fact>}
            <Fact name={n.removed.rewound ? 'Rewound' : 'Removed'}>{stamp(n.removed.at)}</Fact>
            <Fact name="Kept until">{stamp(n.removed.expires)}</Fact>
          </>
        )}
        {kids.length > 0 && (
          <>
            <dt>{n.kind === 'folded' ? 'Branches' : 'Children'}</dt>
            <dd>
              {kids.slice(0, 6).map((c, i, all) => <><Link n={c} select={select} />{i < all.length - 1 && ', '}</>)}
              {kids.length > 6 && ` and ${count(kids.length - 6)} more`}
            </dd>
          </>
        )}
      </dl>
      {n.kind === 'removed' && n.own > 0 && <p class="s t3">A collection may remove these messages after that day.</p>}
      {n.kind === 'folded' && (
        <p class="s t3">Each has at most 3 messages of its own. They leave <T s={n.parent?.name} /> at the marks.</p>
      )}
    </>
  );
}

/** What a branch was forked from, which is never a fold. */
const above = (n: Node): Node | undefined => (n.parent?.kind === 'folded' ? n.parent.parent : n.parent);

/** A branch is compared with the active one, and that with the one that it was forked from. */
export function compared(b: Branch, active: string | undefined, n: Node): { l: string | undefined; r: string } {
  return { l: b.active ? above(n)?.branch?.name : active, r: b.name };
}

const stamp = (at: string): string => {
  const d = when(at);
  return d === timeOf(at) ? `today, ${d}` : d === 'yesterday' ? `yesterday, ${timeOf(at)}` : `${dateOf(new Date(at))}, ${timeOf(at)}`;
};

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <><dt>{name}</dt><dd class="num">{children}</dd></>;
}

function Link({ n, select }: { n: Node; select: (n: Node) => void }) {
  return <button class="inl" onClick={() => select(n)}><NameOf n={n} /></button>;
}

function Actions({ context, n, doing, run, busy }: { context: string; n: Node; doing: Doing; run: Run; busy: boolean }) {
  const b = n.branch;
  const { active } = doing;
  const restore = n.kind === 'removed' && n.removed && !doing.readOnly;
  if (!b && !restore) return null;
  const pair = b && compared(b, active?.name, n);
  return (
    <>
      <div class="acts">
        {b && <a class="btn" href={link(['c', context], { b: b.name })}>Open at the end <kbd>↵</kbd></a>}
        {pair?.l !== undefined && (
          <a class="btn" href={link(['c', context, 'compare'], pair)}>
            Compare with <T class="ell" s={pair.l} /> <kbd>c</kbd>
          </a>
        )}
        {b && !doing.readOnly && (
          <>
            {!b.active && (
              <button class="btn" disabled={busy} onClick={() => void run(() => doing.makeActive(b))}>Make active <kbd>m</kbd></button>
            )}
            <button class="btn" disabled={b.messages === 0} onClick={() => doing.show('fork')}>Fork from a turn… <kbd>f</kbd></button>
            <button class="btn" onClick={() => doing.show('rename')}>Rename… <kbd>r</kbd></button>
            <button class="btn" disabled={b.messages === 0} onClick={() => doing.show('rewind')}>Rewind to a turn…</button>
            {!b.active && <button class="btn danger" onClick={() => doing.show('remove')}>Move to the trash…</button>}
          </>
        )}
        {restore && <button class="btn" disabled={busy} onClick={() => void run(() => doing.restore(n))}>Restore as a branch</button>}
      </div>
      {b && !doing.readOnly && (
        <p class="s t3">
          {b.active ? 'New messages go to this branch, so it cannot be removed. '
            : active && <>New messages go to <T s={active.name} />. </>}
          Every action can be undone for 10 s, and what it removes stays in the trash for the grace period.
        </p>
      )}
    </>
  );
}
