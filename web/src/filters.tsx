import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, type Context, type ContextList } from './api';
import { Icon, toolName } from './icons';
import { base } from './library';
import { changed, go, query } from './route';
import { T } from './text';

const days: [string, string][] = [['1', 'Today and yesterday'], ['7', '7 days'], ['30', '30 days']];

const most = 1000; // contexts that are looked at for what there is to choose from
export const known = signal<Context[]>([]);

/** Loads the newest contexts, for what there is to choose from. */
export const know = (): void =>
  void get<ContextList>('/contexts', { sort: 'updated', limit: most }).then((all) => { known.value = all.contexts; }, () => undefined);

/** Conditions of the Library: a field for titles, and what the newest contexts have to choose from. */
export function Filters({ loaded }: { loaded: boolean }) {
  const q = query.value;
  useEffect(() => {
    if (loaded) know();
  }, [loaded]);
  const values = (of: (c: Context) => string | undefined): string[] => [...new Set(known.value.map(of).filter((v): v is string => !!v))].sort();
  return (
    <div class="filters" role="group" aria-label="Conditions">
      <label class="fil text">
        <Icon name="search" />
        <span class="vh">Title</span>
        <input type="search" placeholder="Title" value={q.get('title') ?? ''} spellcheck={false} onInput={(e) => go(changed({ title: e.currentTarget.value }), true)} />
      </label>
      <Choice name="project" title="Project" values={values((c) => c.labels?.['project'])} shown={base} />
      <Choice name="tool" title="Tool" values={values((c) => c.tool)} shown={toolName} />
      <Choice name="model" title="Model" values={values((c) => c.model)} shown={(v) => v} />
      <Choice name="since" title="Changed" values={days.map(([v]) => v)} shown={(v) => days.find(([d]) => d === v)?.[1] ?? v} />
      {q.get('label') && (
        <a class="fil on" href={changed({ label: '' })} title="Remove this condition"><T s={q.get('label') ?? ''} /> <Icon name="close" /></a>
      )}
    </div>
  );
}

interface ChoiceProps {
  name: string;
  title: string;
  values: string[];
  shown: (v: string) => string;
}

function Choice({ name, title, values, shown }: ChoiceProps) {
  const now = query.value.get(name) ?? '';
  if (now) {
    return <a class="fil on" href={changed({ [name]: '' })} title="Remove this condition"><T s={shown(now)} /> <Icon name="close" /></a>;
  }
  if (values.length === 0) return null;
  return (
    <label class="fil">
      <span class="vh">{title}</span>
      <select value="" onChange={(e) => go(changed({ [name]: e.currentTarget.value }))}>
        <option value="">{title}</option>
        {values.slice(0, 300).map((v) => <option value={v}>{shown(v).slice(0, 80)}</option>)}
      </select>
    </label>
  );
}
