import { render } from 'preact';
import { signal } from '@preact/signals';
import { askAhead } from './ahead';
import { locked } from './api';
import { Join } from './join';
import * as keys from './keys';
import * as live from './live';
import * as route from './route';
import { preload, Shell } from './shell';
import * as store from './store';
import { Unlock } from './unlock';
import * as theme from './theme';
import * as token from './token';

token.takeFromAddress();
theme.start();
route.start();
keys.start();
preload();
if (token.stored()) askAhead();

const known = signal(false);

function App() {
  if (!known.value) return null;
  if (token.invitation.value) return <Join onToken={begin} />;
  return locked.value ? <Unlock onToken={() => { live.start(); void store.load(); }} /> : <Shell />;
}

function begin(mine: string): void {
  token.keep(mine);
  token.invitation.value = '';
  locked.value = false;
  live.start();
  void store.load();
}

const app = document.getElementById('app');
if (app) render(<App />, app);

const found = await token.ask();
if (found) token.keep(found);
locked.value = !found;
known.value = true;
if (found && !token.invitation.value) {
  live.start();
  void store.load();
}
