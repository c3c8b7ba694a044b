import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { payload, type Message, type Part } from './api';
import { Icon } from './icons';
import { base } from './library';
import { size, T } from './text';

const shown = /^image\/(png|jpeg|gif|webp|avif)$/;
const most = 20 << 20; // bytes that load without being asked for

/** An image or a file that a message attaches. Images come from the store alone, never from an address in a message. */
export function Attachment({ part, message, path }: { part: Part; message: Message; path: string }) {
  const f = part.file;
  const url = useSignal('');
  const failed = useSignal(false);
  const image = f?.sha256 && shown.test(f.media_type ?? '') && (f.bytes ?? 0) <= most;
  useEffect(() => {
    if (!image || !f?.sha256) return;
    const abort = new AbortController();
    let made = '';
    payload(path, message.id, f.sha256, abort.signal).then((b) => {
      made = URL.createObjectURL(new Blob([b], { type: f.media_type ?? '' }));
      url.value = made;
    }, () => {
      failed.value = true;
    });
    return () => {
      abort.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [f?.sha256]);
  if (image && !failed.value) {
    return url.value
      ? <a class="shot" href={url.value} target="_blank" rel="noopener"><img src={url.value} width={f?.width} height={f?.height} alt={(f?.path || 'An image').slice(0, 200)} onError={() => { failed.value = true; }} /></a>
      : <span class="shot wait" aria-busy="true" />;
  }
  return (
    <span class="file">
      <Icon name="clip" />
      <T class="ell" s={base(f?.path) || f?.media_type || part.text} />
      <span class="t3 num ell">{[f?.path && f?.media_type, f?.bytes != null && size(f.bytes)].filter(Boolean).join(', ')}</span>
    </span>
  );
}
