// What the screens that open most ask first. It is asked before they are there.
import { ahead, segment, type Context } from './api';
import { conditionsOf, firstPage } from './contexts';
import { parts, query } from './route';
import { anchorOf, namedPlace, shown } from './window';

export function askAhead(): void {
  const [screen, id, view] = parts();
  if (!screen) void ahead('/contexts', firstPage(conditionsOf(query.value)));
  else if (screen === 'c' && id && !view) void conversation('/contexts/' + segment(id));
}

async function conversation(path: string): Promise<void> {
  const place = namedPlace(query.value);
  const context = ahead<Context>(path);
  const branch = query.value.get('b') ?? (await context)?.active_branch;
  if (branch !== undefined && place && !anchorOf()) void ahead(`${path}/branches/${segment(branch)}/parts`, shown(place));
}
