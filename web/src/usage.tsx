import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get } from './api';
import { base } from './library';
import { link } from './route';
import {count, counted, money, T, tokens} from './text';

interface Counts {
  steps: number;
  calls: number;
  input: number;
  cache_read: number;
  cache_write: number;
  output: number;
  total: number;
  cost?: number;
  unpriced: number;
  estimated: number;
  unpriced_tokens: number;
}

interface Row extends Counts {
  key: string;
  context?: string;
  branch?: string;
  id?: string;
  prompt?: string;
  text?: string;
}

interface Report {
  rows: Row[];
  left_out: number;
  sum: Counts & { contexts: number; prices: string; unpriced_models: string[] };
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function Usage(_: { parts: string[] }) {
  const days = useSignal<Report | undefined>(undefined);
  const models = useSignal<Report | undefined>(undefined);
  const projects = useSignal<Report | undefined>(undefined);
  const prompts = useSignal<Report | undefined>(undefined);
  const failed = useSignal('');
  useEffect(() => {
    const load = async () => {
      try {
        days.value = await get<Report>('/usage', { by: 'day', time_zone: zone, limit: 10_000 });
        models.value = await get<Report>('/usage', { by: 'model' });
        projects.value = await get<Report>('/usage', { by: 'project' });
        prompts.value = await get<Report>('/usage', { by: 'prompt', limit: 10_000 });
      } catch (e) {
        failed.value = e instanceof Error ? e.message : String(e);
      }
    };
    void load();
  }, []);
  const sum = days.value?.sum;
  const dear = [...(prompts.value?.rows ?? [])].filter((r) => r.prompt).sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.total - a.total).slice(0, 10);
  return (
    <div class="col">
      <header class="bar"><h1>Usage</h1></header>
      <div class="scroll usage" tabIndex={0} aria-label="Usage">
        {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
        {sum && (
          <dl class="figures">
            <Figure name="Tokens" value={tokens(sum.total)} note={`${tokens(sum.output)} of output`} />
            <Figure name="Steps" value={count(sum.steps)} note={counted(sum.contexts, 'context')} />
            <Figure name="Cost" value={money(sum)} note={sum.unpriced > 0 ? `${counted(sum.unpriced, 'step')} without a price` : `prices of ${sum.prices}`} />
            <Figure name="Estimated" value={sum.steps ? Math.round((100 * sum.estimated) / sum.steps) + ' %' : '–'} note="of the steps record no tokens" />
          </dl>
        )}
        {days.value && <Days rows={days.value.rows} />}
        <div class="tables">
          {projects.value && <Table title="By project" head="Project" rows={projects.value.rows} name={(r) => base(r.key) || 'No project'} />}
          {models.value && <Table title="By model" head="Model" rows={models.value.rows} name={(r) => r.key || 'Not recorded'} />}
        </div>
        {dear.length > 0 && (
          <Table title="Most expensive prompts" head="Prompt" rows={dear} name={(r) => r.text || 'A prompt without text'} to={(r) => r.context && link(['c', r.context], { b: r.branch, m: r.prompt })} />
        )}
      </div>
    </div>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return <div><dt>{name}</dt><dd class="num">{value}</dd><dd class="s t3">{note}</dd></div>;
}

const dayLength = 86_400_000;
const [fewestDays, mostDays] = [14, 90]; // in the plot

/** New tokens of each day, and below, on a scale of its own, what was read from a cache. */
function Days({ rows }: { rows: Row[] }) {
  const known = new Map(rows.filter((r) => /^\d{4}-\d\d-\d\d$/.test(r.key)).map((r) => [r.key, r]));
  const keys = [...known.keys()].sort();
  const last = keys[keys.length - 1];
  if (!last) return null;
  const shown: string[] = [];
  const end = Date.parse(last);
  const begin = Math.max(end - (mostDays - 1) * dayLength, Math.min(Date.parse(keys[0] ?? last), end - (fewestDays - 1) * dayLength));
  for (let t = begin; t <= end; t += dayLength) shown.push(new Date(t).toISOString().slice(0, 10));
  const fresh = (r: Row | undefined) => (r ? Math.max(0, r.total - r.cache_read) : 0);
  const high = Math.max(1, ...shown.map((d) => fresh(known.get(d))));
  const cached = Math.max(1, ...shown.map((d) => known.get(d)?.cache_read ?? 0));
  const width = 10;
  return (
    <figure class="plot">
      <figcaption>New tokens by day, the highest {tokens(high)}; below, read from a cache, the highest {tokens(cached)}</figcaption>
      <svg viewBox={`0 0 ${shown.length * width} 160`} preserveAspectRatio="none" role="img" aria-label="New tokens by day; the table has the numbers">
        {shown.map((d, i) => {
          const r = known.get(d);
          if (!r) return null;
          const out = (r.output / high) * 100;
          const all = (fresh(r) / high) * 100;
          return (
            <g key={d}>
              <title>{`${d}: ${count(fresh(r))} new, ${count(r.cache_read)} from a cache`}</title>
              <rect class="in" x={i * width + 1} width={width - 2} y={100 - all} height={Math.max(0, all - out)} />
              <rect class="outp" x={i * width + 1} width={width - 2} y={100 - out} height={out} />
              <rect class="cached" x={i * width + 1} width={width - 2} y={160 - (r.cache_read / cached) * 50} height={(r.cache_read / cached) * 50} />
            </g>
          );
        })}
        <line x1="0" x2={shown.length * width} y1="100" y2="100" />
        <line x1="0" x2={shown.length * width} y1="160" y2="160" />
      </svg>
      <div class="days s t3 num"><span>{shown[0]}</span><span>{last}</span></div>
      <table class="vh">
        <thead><tr><th>Day</th><th>New tokens</th><th>From a cache</th></tr></thead>
        <tbody>{keys.map((d) => <tr key={d}><td>{d}</td><td>{fresh(known.get(d))}</td><td>{known.get(d)?.cache_read}</td></tr>)}</tbody>
      </table>
    </figure>
  );
}

function Table({ title, head, rows, name, to }: { title: string; head: string; rows: Row[]; name: (r: Row) => string; to?: (r: Row) => string | undefined | false }) {
  return (
    <section class="tab">
      <h2>{title}</h2>
      <table>
        <thead><tr><th>{head}</th><th class="r">Tokens</th><th class="r">Output</th><th class="r">Cost</th></tr></thead>
        <tbody>
          {rows.slice(0, 12).map((r) => {
            const href = to?.(r);
            return (
              <tr key={r.key + (r.context ?? '')}>
                <td class="ell">{href ? <a href={href}><T s={name(r)} /></a> : <T s={name(r)} />}</td>
                <td class="r num">{tokens(r.total)}</td>
                <td class="r num">{tokens(r.output)}</td>
                <td class="r num">{money(r)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
