// What a person may choose. It stays in this browser, and none of it is stored text.
import { signal } from '@preact/signals';
import { Dialog } from './dialog';
import { setSingle, single } from './keys';
import * as theme from './theme';

export const settingsOpen = signal(false);

const schemes: [theme.Scheme, string][] = [['', 'As the system'], ['light', 'Light'], ['dark', 'Dark']];

export function Settings() {
  if (!settingsOpen.value) return null;
  return (
    <Dialog title="Settings" onClose={() => { settingsOpen.value = false; }}>
      <div class="settings">
        <fieldset>
          <legend>Colours</legend>
          {schemes.map(([value, title]) => (
            <label class="check"><input type="radio" name="scheme" checked={theme.chosen.value === value} onChange={() => theme.choose(value)} />{title}</label>
          ))}
        </fieldset>
        <fieldset>
          <legend>Reading</legend>
          <label class="check">
            <input type="checkbox" checked={theme.broken.value} onChange={(e) => theme.breakLines(e.currentTarget.checked)} />
            Break long lines of code, diffs and output
          </label>
        </fieldset>
        <fieldset>
          <legend>Keys</legend>
          <label class="check">
            <input type="checkbox" checked={single.value} onChange={(e) => setSingle(e.currentTarget.checked)} />
            Single keys do something
          </label>
        </fieldset>
      </div>
    </Dialog>
  );
}
