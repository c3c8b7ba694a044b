// A message as it is stored, byte for byte.
import { useSignal } from '@preact/signals';
import { head, segment } from './api';
import { fold } from './fold';
import { size, visible } from './text';

const most = 256 << 10; // bytes that are shown here

export function Raw({ path, id }: { path: string; id: string }) {
  const by = fold(id + 'raw');
  const body = useSignal<{ text: string; whole: boolean } | undefined>(undefined);
  const failed = useSignal('');
  const load = async () => {
    by.value = !by.value;
    if (!by.value || body.value !== undefined) return;
    try {
      body.value = await head(`${path}/messages/${segment(id)}/body`, most);
    } catch (e) {
      failed.value = e instanceof Error ? e.message : String(e);
    }
  };
  return (
    <div class="raw">
      <button class="link" aria-expanded={!!by.value} onClick={() => void load()}>Raw</button>
      {by.value && body.value && <pre class="out">{visible(body.value.text)}</pre>}
      {by.value && body.value?.whole === false && <p class="t3 s">The first {size(most)}. The file of the message has the rest.</p>}
      {failed.value && <p class="del s" role="alert">{failed.value}</p>}
    </div>
  );
}
