// The command with which a tool goes on with a conversation that was imported from it.
import type { Context } from './api';

const commands: Record<string, string> = {
  'claude-code': 'claude --resume',
  codex: 'codex resume',
  'copilot-cli': 'copilot --resume',
  'gemini-cli': 'gemini --resume',
  opencode: 'opencode --session',
  openhands: 'openhands --resume',
  pi: 'pi --session',
};
const plain = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/; // what no shell takes for more than a word, and no program for an option

/** The command, or "" if the tool has none or the id is anything but a plain word. */
export function resumeCommand(c: Context): string {
  const command = Object.hasOwn(commands, c.tool ?? '') ? commands[c.tool ?? ''] : undefined;
  return command && c.session && plain.test(c.session) ? `${command} ${c.session}` : '';
}
