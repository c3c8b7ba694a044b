import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, lines } from './api';
import { link } from './route';
import { count, counted, size, T } from './text';

interface Finding {
  record: 'finding';
  context?: string;
  kind: string;
  severity: 'error' | 'warning' | 'info';
  path?: string;
  id?: string;
  detail: string;
  repairable: boolean;
}

interface Summary {
  record: 'summary';
  contexts: number;
  messages: number;
  findings: number;
}

interface Disk {
  kinds: { kind: string; files: number; bytes: number; disk_bytes: number }[];
  freed_bytes: number;
}

const kinds: Record<string, string> = {
  messages: 'Message files', logs: 'Newest records', segments: 'Sealed records', blobs: 'Payloads', trash: 'Trash', derived: 'Search and caches',
  other: 'Metadata and locks',
};

/** What the store takes on the disk, and what would make it smaller. */
function Room() {
  const disk = useSignal<Disk | undefined>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    get<Disk>('/disk', {}, abort.signal).then((d) => { disk.value = d; }, () => undefined);
    return () => abort.abort();
  }, []);
  const d = disk.value;
  if (!d) return null;
  return (
    <section class="room tab">
      <h2>On the disk</h2>
      <table>
        <thead><tr><th>Kind</th><th class="r">Files</th><th class="r">Size</th><th class="r">Room</th></tr></thead>
        <tbody>
          {d.kinds.map((k) => (
            <tr><td>{kinds[k.kind] ?? k.kind}</td><td class="r num">{count(k.files)}</td><td class="r num">{size(k.bytes)}</td><td class="r num">{size(k.disk_bytes)}</td></tr>
          ))}
        </tbody>
      </table>
      {d.freed_bytes > 0 && <p>Archiving every message would free ~{size(d.freed_bytes)}: <code>ctxtool archive --all</code></p>}
    </section>
  );
}

/** What check finds in the store, and the room that it takes. The page repairs nothing. */
export function Health(_: { parts: string[] }) {
  const findings = useSignal<Finding[]>([]);
  const summary = useSignal<Summary | undefined>(undefined);
  const running = useSignal(false);
  const failed = useSignal('');
  const abort = useRef<AbortController>(undefined);
  const run = async () => {
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    running.value = true;
    failed.value = '';
    findings.value = [];
    summary.value = undefined;
    try {
      for (const l of await lines<Finding | Summary>('/check', {}, mine.signal)) {
        if (l.record === 'finding') findings.value = [...findings.value, l];
        else if (l.record === 'summary') summary.value = l;
      }
    } catch (e) {
      if (!mine.signal.aborted) failed.value = e instanceof Error ? e.message : String(e);
    }
    running.value = false;
  };
  useEffect(() => {
    void run();
    return () => abort.current?.abort();
  }, []);
  const s = summary.value;
  return (
    <div class="col">
      <header class="bar">
        <h1>Health</h1>
        <span class="t3 s num">{s && `${counted(s.messages, 'message')} of ${counted(s.contexts, 'conversation')} checked`}</span>
        <span class="sp" />
        {running.value ? <button class="btn" onClick={() => abort.current?.abort()}>Stop</button> : <button class="btn" onClick={() => void run()}>Check again</button>}
      </header>
      <div class="scroll" tabIndex={0} aria-label="Findings" aria-busy={running.value}>
        {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
        {running.value && findings.value.length === 0 && <p class="t3 pad" role="status">Checking every conversation…</p>}
        {s && s.findings === 0 && <div class="empty"><p>{count(s.messages)} messages checked, nothing is damaged or missing.</p></div>}
        {findings.value.map((f, i) => (
          <div key={i} class="finding">
            <span class={'chip ' + (f.severity === 'error' ? 'red' : 'warn')}><T s={f.kind} /></span>
            <div class="two">
              <T s={f.detail} />
              <span class="s t3">
                {f.context && <a class="link" href={link(['c', f.context], { m: f.id })}>{f.context.slice(0, 8)}</a>} <T class="mono" s={f.path} />
              </span>
            </div>
            <code>{f.context && /^[0-9a-f-]+$/.test(f.context) ? `ctxtool repair ${f.context.slice(0, 8)}` : 'ctxtool repair'}</code>
          </div>
        ))}
        <Room />
      </div>
    </div>
  );
}
