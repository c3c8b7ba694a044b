import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, type Branch, type BranchMap, type UsageRow } from './api';
import { Icon, type IconName } from './icons';
import { changed, go } from './route';
import { count, T, tokens } from './text';

const dearest = 5; // turns with the most tokens

interface Props {
  context: string;
  branch: string;
  branches: Branch[];
  map: BranchMap | undefined;
  usage: Map<string, UsageRow>;
}

interface Moment {
  id: string;
  type: string;
  content: string;
  from: string[];
}

interface Mark {
  icon: IconName;
  text: string;
  note: string;
  place: Record<string, string | number>;
}

/** What stands out in a branch: turns that took the most tokens, compactions, forks and moments. */
export function MarkTab({ context, branch, branches, map, usage }: Props) {
  const moments = useSignal<Moment[] | undefined>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    get<{ moments: Moment[] }>('/moments', { context, limit: 1000 }, abort.signal).then((got) => { moments.value = got.moments; }, () => undefined);
    return () => abort.abort();
  }, [context, map?.length]);
  const at = (position: number) => ({ p: position, m: '', not: '' });
  const groups: [string, Mark[]][] = [
    ['Most tokens', [...usage.values()].filter((u) => u.prompt && u.total > 0).sort((a, b) => b.total - a.total).slice(0, dearest).map((u) => (
      { icon: 'sum', text: u.text || 'A prompt without text', note: tokens(u.total), place: { m: u.prompt ?? '', p: '', not: '' } }
    ))],
    ['Compactions', (map?.breaks_at ?? []).map((p) => ({ icon: 'swap', text: 'Compacted', note: '#' + count(p), place: at(p) }))],
    ['Forks', forksOf(branch, branches).map(({ name, position }) => (
      { icon: 'branch', text: name, note: '#' + count(position), place: at(Math.max(0, position - 1)) }
    ))],
    ['Moments', (moments.value ?? []).map((m) => ({ icon: 'flag', text: m.content, note: m.type, place: { m: m.from[0] ?? '', p: '', not: '' } }))],
  ];
  const shown = groups.filter(([, all]) => all.length > 0);
  return (
    <div class="scroll" tabIndex={0} aria-label="Marks" aria-busy={!map || !moments.value}>
      {map && moments.value && shown.length === 0 && <p class="t3 s pad">No compaction, fork or moment, and no tokens are recorded</p>}
      {shown.map(([title, all]) => (
        <section key={title}>
          <h3 class="group">{title} <span class="t3 num">{count(all.length)}</span></h3>
          {all.map((m, i) => (
            <button key={i} class="nmark" onClick={() => go(changed(m.place))}>
              <Icon name={m.icon} />
              <T class="p" s={m.text.slice(0, 300)} />
              <T class="t3 num" s={m.note} />
            </button>
          ))}
        </section>
      ))}
    </div>
  );
}

/** Where other branches part from this one, and where this one parts from another. */
function forksOf(branch: string, branches: Branch[]): { name: string; position: number }[] {
  return branches
    .filter((b) => b.from !== undefined && (b.from === branch || b.name === branch))
    .map((b) => ({ name: b.name === branch ? b.from ?? '' : b.name, position: b.shared ?? 0 }))
    .sort((a, b) => a.position - b.position);
}
