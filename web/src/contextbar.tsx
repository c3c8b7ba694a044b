import type { ComponentChildren } from 'preact';
import type { Context, Live } from './api';
import { Badge, Icon } from './icons';
import { base } from './library';
import { link } from './route';
import { stateText } from './shell';
import { T } from './text';

/** Links to the views of a context. */
export function Views({ id, branch, here }: { id: string; branch: string; here: '' | 'branches' | 'compare' | 'assemble' | 'export' }) {
  const views = [
    ['', 'Conversation', 'list', link(['c', id], { b: branch })],
    ['branches', 'Branches', 'branch', link(['c', id, 'branches'], { b: branch })],
    ['compare', 'Compare', 'compare', link(['c', id, 'compare'], { l: branch })],
    ['assemble', 'Assemble', 'sum', link(['c', id, 'assemble'], { b: branch })],
    ['export', 'Export', 'out', link(['c', id, 'export'], { b: branch })],
  ] as const;
  return (
    <nav class="views" aria-label="Views">
      {views.map(([name, title, icon, to]) => (
        <a href={to} aria-current={name === here ? 'page' : undefined} aria-label={title}>
          <Icon name={icon} />
          <span>{title}</span>
        </a>
      ))}
    </nav>
  );
}

/** The header of a view of a context, with the way back to its conversation. */
export function ContextBar({ c, branch, here, l, children }: {
  c: Context; branch: string; here: 'branches' | 'compare'; l: Live | undefined; children?: ComponentChildren;
}) {
  return (
    <header class="bar">
      <a class="ghost" href={link(['c', c.id], { b: branch })} aria-label="Back to the conversation"><Icon name="back" /></a>
      <span class="crumb no-phone"><T class="ell" s={base(c.labels?.['project'])} />{c.labels?.['project'] && <span>/</span>}</span>
      <Badge tool={c.tool} />
      <h1 class="ell"><T s={c.title || 'Untitled'} title /></h1>
      {l && <span class={'chip ' + (l.state === 'works' ? 'live' : 'warn')} title={stateText[l.state]}>{l.state}</span>}
      <span class="sp" />
      <Views id={c.id} branch={branch} here={here} />
      {children}
    </header>
  );
}
