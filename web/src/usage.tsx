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
  const contexts = useSignal<Report | undefined>(undefined);
  const prompts = useSignal<Report | undefined>(undefined);
  const failed = useSignal('');
  useEffect(() => {
    const load = async () => {
      try {
        days.value = await get<Report>('/usage', { by: 'day', time_zone: zone, limit: 10_000 });
        models.value = await get<Report>('/usage', { by: 'model' });
        projects.value = await get<Report>('/usage', { by: 'project' });
        contexts.value = await get<Report>('/usage', { by: 'context', limit: 10_000 });
        prompts.value = await get<Report>('/usage', { by: 'prompt', limit: 10_000 });
      } catch (e) {
        failed.value = e instanceof Error ? e.message : String(e);
      }
    };
    void load();
  }, []);
  const sum = days.value?.sum;
  const dearest = (rows: Row[] | undefined) => [...(rows ?? [])].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.total - a.total);
  const dear = dearest(prompts.value?.rows).filter((r) => r.prompt).slice(0, 10);
  return (
    <div class="col">
      <header class="bar"><h1>Usage</h1></header>
      <div class="scroll usage" tabIndex={0} aria-label="Usage">
        {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
        {sum && (
          <dl class="figures">
            <Figure name="Tokens" value={tokens(sum.total)} note={`${tokens(sum.output)} of output`} />
            <Figure name="Steps" value={count(sum.steps)} note={counted(sum.contexts, 'conversation')} />
            <Figure name="Cost" value={money({ ...sum, unpriced: 0 })} note={sum.unpriced > 0 ? `at least: ${counted(sum.unpriced, 'step')} ${sum.unpriced === 1 ? 'has' : 'have'} no price` : `prices of ${sum.prices}`} />
            <Figure name="Estimated" value={sum.steps ? Math.round((100 * sum.estimated) / sum.steps) + ' %' : '–'} note="of the steps record no tokens" />
          </dl>
        )}
        {days.value && <Days rows={days.value.rows} />}
        <div class="tables">
          {projects.value && <Table title="By project" head="Project" rows={projects.value.rows} name={(r) => projectName(r.key, projects.value?.rows ?? []) || 'No project'} to={(r) => r.key && link([], { project: r.key })} />}
          {models.value && <Table title="By model" head="Model" rows={models.value.rows} name={(r) => r.key || 'Not recorded'} />}
        </div>
        {contexts.value && (
          <Table title="Most expensive conversations" head="Conversation" rows={dearest(contexts.value.rows).slice(0, 10)} name={(r) => r.text || 'Untitled'} to={(r) => link(['c', r.key])} />
        )}
        {dear.length > 0 && (
          <Table title="Most expensive prompts" head="Prompt" rows={dear} name={(r) => r.text || 'A prompt without text'} to={(r) => r.context && link(['c', r.context], { b: r.branch, m: r.prompt })} />
        )}
      </div>
    </div>
  );
}

/** The last part of a path, with the one before it where another project has the same. */
function projectName(path: string, all: Row[]): string {
  const name = base(path);
  if (!all.some((r) => r.key !== path && base(r.key) === name)) return name;
  return path.split('/').filter(Boolean).slice(-2).join('/');
}

function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return <div><dt>{name}</dt><dd class="num">{value}</dd><dd class="s t3">{note}</dd></div>;
}

const dayLength = 86_400_000;
const [fewestDays, mostBars] = [14, 90]; // in the plot

/** Some days of the plot, the first and the last of which are named. */
interface Bar {
  day: string;
  until: string;
  fresh: number;
  output: number;
  cached: number;
}

const dayOf = (t: number): string => new Date(t).toISOString().slice(0, 10);

/** New tokens of each day, and below, on a scale of its own, what was read from a cache. */
function Days({ rows }: { rows: Row[] }) {
  const days = rows.filter((r) => /^\d{4}-\d\d-\d\d$/.test(r.key)).sort((a, b) => (a.key < b.key ? -1 : 1));
  const last = days[days.length - 1]?.key;
  if (!last) return null;
  const fresh = (r: Counts) => Math.max(0, r.total - r.cache_read);
  const end = Date.parse(last);
  const begin = Math.min(Date.parse(days[0]?.key ?? last), end - (fewestDays - 1) * dayLength);
  const length = Math.ceil(((end - begin) / dayLength + 1) / mostBars); // days of a bar
  const bars: Bar[] = [];
  for (let t = begin; t <= end; t += length * dayLength) bars.push({ day: dayOf(t), until: dayOf(Math.min(end, t + (length - 1) * dayLength)), fresh: 0, output: 0, cached: 0 });
  for (const r of days) {
    const b = bars[Math.floor((Date.parse(r.key) - begin) / dayLength / length)];
    if (!b) continue;
    b.fresh += fresh(r);
    b.output += r.output;
    b.cached += r.cache_read;
  }
  const high = Math.max(1, ...bars.map((b) => b.fresh));
  const cached = Math.max(1, ...bars.map((b) => b.cached));
  const width = 10;
  return (
    <figure class="plot">
      <figcaption>
        New tokens, a bar for {length === 1 ? 'each day' : `every ${count(length)} days`}, up to {tokens(high)}. Below: tokens read from a cache, up to {tokens(cached)}
      </figcaption>
      <svg viewBox={`0 0 ${bars.length * width} 160`} preserveAspectRatio="none" role="img" aria-label="New tokens by day; the table has the numbers">
        {bars.map((b, i) => {
          if (b.fresh + b.cached === 0) return null;
          const out = (b.output / high) * 100;
          const all = (b.fresh / high) * 100;
          return (
            <g key={b.day}>
              <title>{`${b.day}${b.until === b.day ? '' : ' to ' + b.until}: ${count(b.fresh)} new, ${count(b.cached)} from a cache`}</title>
              <rect class="hover" x={i * width} width={width} y="0" height="160" />
              <rect class="in" x={i * width + 1} width={width - 2} y={100 - all} height={Math.max(0, all - out)} />
              <rect class="outp" x={i * width + 1} width={width - 2} y={100 - out} height={out} />
              <rect class="cached" x={i * width + 1} width={width - 2} y={160 - (b.cached / cached) * 50} height={(b.cached / cached) * 50} />
            </g>
          );
        })}
        <line x1="0" x2={bars.length * width} y1="100" y2="100" />
        <line x1="0" x2={bars.length * width} y1="160" y2="160" />
      </svg>
      <div class="days s t3 num"><span>{bars[0]?.day}</span><span>{last}</span></div>
      <div class="vh"><table>
        <thead><tr><th>Day</th><th>New tokens</th><th>From a cache</th></tr></thead>
        <tbody>{days.map((r) => <tr key={r.key}><td>{r.key}</td><td>{fresh(r)}</td><td>{r.cache_read}</td></tr>)}</tbody>
      </table></div>
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
