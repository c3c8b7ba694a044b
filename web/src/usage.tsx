import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get } from './api';
import { Icon } from './icons';
import { base } from './library';
import { changed, go, link, query } from './route';
import { count, counted, dateOf, money, T, tokens } from './text';

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

/** The days that are looked at, from the address; empty for all. */
const chosenDays = (): { from: string; until: string } => ({ from: query.value.get('from') ?? '', until: query.value.get('until') ?? query.value.get('from') ?? '' });

/** The times that a choice of days stands for. */
function timesOf(from: string, until: string): { since?: string; until?: string } {
  const begin = new Date(from + 'T00:00');
  const end = new Date(until + 'T00:00');
  if (Number.isNaN(begin.getTime()) || Number.isNaN(end.getTime())) return {};
  end.setDate(end.getDate() + 1);
  return { since: begin.toISOString(), until: end.toISOString() };
}

interface Tables {
  model: Report;
  project: Report;
  context: Report;
  prompt: Report;
}

export function Usage(_: { parts: string[] }) {
  const days = useSignal<Report | undefined>(undefined);
  const tables = useSignal<Tables | undefined>(undefined);
  const failed = useSignal('');
  const fail = (e: unknown) => { failed.value = e instanceof Error ? e.message : String(e); };
  const { from, until } = chosenDays();
  useEffect(() => {
    get<Report>('/usage', { by: 'day', time_zone: zone, limit: 10_000 }).then((d) => { days.value = d; }, fail);
  }, []);
  useEffect(() => {
    const abort = new AbortController();
    const load = async () => {
      const ask = (by: string) => get<Report>('/usage', { by, limit: 10_000, ...(from ? timesOf(from, until) : {}) }, abort.signal);
      // They come together: none moves another one away.
      const [model, project, context, prompt] = await Promise.all([ask('model'), ask('project'), ask('context'), ask('prompt')]);
      tables.value = { model, project, context, prompt };
    };
    load().catch((e: unknown) => { if (!abort.signal.aborted) fail(e); });
    return () => abort.abort();
  }, [from, until]);
  const t = tables.value;
  const sum = from ? t?.model.sum : (days.value ?? t?.model)?.sum;
  const dearest = (rows: Row[] | undefined) => [...(rows ?? [])].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.total - a.total);
  const dear = dearest(t?.prompt.rows).filter((r) => r.prompt).slice(0, 10);
  const dated = (days.value?.rows ?? []).filter((r) => isDay.test(r.key));
  return (
    <div class="col">
      <header class="bar">
        <h1>Usage</h1>
        {from && <a class="fil on" href={changed({ from: '', until: '' })} title="All days">{daysText(from, until)} <Icon name="close" /></a>}
      </header>
      <div class="scroll usage" tabIndex={0} aria-label="Usage">
        {failed.value && <p class="gap bad" role="alert"><T s={failed.value} /></p>}
        {!sum && !failed.value && <p class="t3" role="status">Adding up…</p>}
        {sum && (
          <dl class="figures">
            <Figure name="Tokens" value={tokens(sum.total)} note={`${tokens(sum.output)} of output`} />
            <Figure name="Steps" value={count(sum.steps)} note={counted(from ? (t?.context.rows.length ?? 0) : sum.contexts, 'conversation')} />
            <Figure name="Cost" value={money({ ...sum, unpriced: 0 })} note={sum.unpriced > 0 ? `at least: ${counted(sum.unpriced, 'step')} ${sum.unpriced === 1 ? 'has' : 'have'} no price` : `prices of ${sum.prices}`} />
            <Figure name="Estimated" value={sum.steps ? Math.round((100 * sum.estimated) / sum.steps) + ' %' : '–'} note="of the steps record no tokens" />
          </dl>
        )}
        {days.value && <Days rows={dated} from={from} until={until} />}
        {days.value && t && (
          <>
            <div class="tables">
              <Table title="Most expensive days" head="Day" rows={dearest(dated).slice(0, 10)} name={(r) => daysText(r.key, r.key)} to={(r) => changed({ from: r.key, until: '' })} />
              <Table title="By project" head="Project" rows={t.project.rows} name={(r) => projectName(r.key, t.project.rows) || 'No project'} to={(r) => r.key && link([], { project: r.key })} />
              <Table title="By model" head="Model" rows={t.model.rows} name={(r) => r.key || 'Not recorded'} />
            </div>
            <Table title="Most expensive conversations" head="Conversation" rows={dearest(t.context.rows).slice(0, 10)} name={(r) => r.text || 'Untitled'} to={(r) => link(['c', r.key])} />
            {dear.length > 0 && (
              <Table title="Most expensive prompts" head="Prompt" rows={dear} name={(r) => r.text || 'A prompt without text'} to={(r) => r.context && link(['c', r.context], { b: r.branch, m: r.prompt })} />
            )}
          </>
        )}
      </div>
    </div>
  );
}

const isDay = /^\d{4}-\d\d-\d\d$/;

const daysText = (from: string, until: string): string => [from, ...(until && until !== from ? [until] : [])].map((d) => (isDay.test(d) ? dateOf(new Date(d + 'T00:00')) : d.slice(0, 20))).join(' – ');

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
  cost: number;
  fresh: number;
  cached: number;
}

const dayOf = (t: number): string => new Date(t).toISOString().slice(0, 10);
const dollars = (n: number): string => '$' + (n < 100 ? n.toFixed(2) : count(Math.round(n)));

/** What each day cost, or if nothing has a price, its new tokens. */
function Days({ rows, from, until }: { rows: Row[]; from: string; until: string }) {
  const days = [...rows].sort((a, b) => (a.key < b.key ? -1 : 1));
  const last = days[days.length - 1]?.key;
  if (!last) return null;
  const end = Date.parse(last);
  const begin = Math.min(Date.parse(days[0]?.key ?? last), end - (fewestDays - 1) * dayLength);
  const length = Math.ceil(((end - begin) / dayLength + 1) / mostBars); // days of a bar
  const bars: Bar[] = [];
  for (let t = begin; t <= end; t += length * dayLength) bars.push({ day: dayOf(t), until: dayOf(Math.min(end, t + (length - 1) * dayLength)), cost: 0, fresh: 0, cached: 0 });
  for (const r of days) {
    const b = bars[Math.floor((Date.parse(r.key) - begin) / dayLength / length)];
    if (!b) continue;
    b.cost += r.cost ?? 0;
    b.fresh += Math.max(0, r.total - r.cache_read);
    b.cached += r.cache_read;
  }
  const priced = bars.some((b) => b.cost > 0);
  const of = (b: Bar) => (priced ? b.cost : b.fresh);
  const high = Math.max(...bars.map(of)) || 1;
  const shown = (n: number) => (priced ? dollars(n) : tokens(n));
  const width = 10;
  return (
    <figure class="plot">
      <figcaption>{priced ? 'Cost' : 'New tokens'} of {length === 1 ? 'each day' : `every ${count(length)} days`}, up to {shown(high)}</figcaption>
      <svg viewBox={`0 0 ${bars.length * width} 100`} preserveAspectRatio="none" role="group" aria-label="By day; the tables have the numbers">
        {bars.map((b, i) => {
          if (b.fresh + b.cached + b.cost === 0) return null;
          const name = `${daysText(b.day, b.until)}: ${priced ? dollars(b.cost) + ', ' : ''}${count(b.fresh)} new tokens, ${count(b.cached)} from a cache`;
          const choose = () => go(changed({ from: b.day, until: b.until === b.day ? '' : b.until }));
          return (
            <g key={b.day} role="link" tabIndex={0} aria-label={name} onClick={choose} onKeyDown={(e) => { if (e.key === 'Enter') choose(); }}>
              <title>{name}</title>
              <rect class="hover" x={i * width} width={width} y="0" height="100" />
              <rect class={from && b.day >= from && b.until <= until ? 'outp' : 'in'} x={i * width + 1} width={width - 2} y={100 - (of(b) / high) * 100} height={(of(b) / high) * 100} />
            </g>
          );
        })}
        <line x1="0" x2={bars.length * width} y1="100" y2="100" />
      </svg>
      <div class="days s t3 num"><span>{daysText(bars[0]?.day ?? '', '')}</span><span>{daysText(bars[Math.floor(bars.length / 2)]?.day ?? '', '')}</span><span>{daysText(last, '')}</span></div>
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
