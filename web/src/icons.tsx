// Icons of 16 pixels, drawn with lines.
const paths: Record<string, string> = {
  library: 'M2.5 4h11M2.5 8h11M2.5 12h7',
  search: 'M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.4 10.4l3.1 3.1',
  files: 'M4 2h5l3.2 3.2V14H4zM9 2v3.2h3.2',
  usage: 'M2.5 13.5h11M4.5 11V8M8 11V4M11.5 11V6.5',
  health: 'M2 8.5h3l1.6-4 2.9 7.5 1.7-3.5H14',
  branch: 'M4.5 5.2v5.6M6.1 3.6a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM6.1 12.4a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM13.1 5.6a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM11.5 7.2c0 2.6-3 2.3-5.5 3.6',
  chevron: 'M6 3.5 10.5 8 6 12.5',
  down: 'M3.5 6 8 10.5 12.5 6',
  shell: 'M3 4l4 4-4 4M8.5 12.5H13',
  read: 'M2.5 3.3h4L8 4.6l1.5-1.3h4v9.2h-4L8 13.8l-1.5-1.3h-4zM8 4.6v9.2',
  edit: 'M10.8 2.8l2.4 2.4-7.5 7.5-3.1.7.7-3.1z',
  web: 'M13.8 8A5.8 5.8 0 1 1 2.2 8a5.8 5.8 0 0 1 11.6 0zM2.2 8h11.6M8 2.2c3.5 3.6 3.5 8 0 11.6-3.5-3.6-3.5-8 0-11.6z',
  todo: 'M2.5 4.5l1.2 1.2L6 3.3M2.5 11l1.2 1.2L6 9.8M8.5 4.5h5M8.5 11h5',
  agent: 'M3 5h10v8H3zM8 5V2.5M6 8.8v.5M10 8.8v.5',
  other: 'M13 8A5 5 0 1 1 3 8a5 5 0 0 1 10 0zM8 5.5V8l1.8 1.2',
  think: 'M6 12.5h4M6.6 14.2h2.8M5.8 10.6C4.5 9.7 3.7 8.4 3.7 6.8a4.3 4.3 0 0 1 8.6 0c0 1.6-.8 2.9-2.1 3.8',
  folder: 'M2 4.2h4.2l1.3 1.5H14v7.1H2z',
  moon: 'M13 9.6A5.6 5.6 0 1 1 6.4 3a4.6 4.6 0 0 0 6.6 6.6z',
  warning: 'M8 2.5 14 13H2zM8 6.5v3M8 11.3v.01',
  lock: 'M3.5 7h9v6.5h-9zM5.5 7V5a2.5 2.5 0 0 1 5 0v2',
  close: 'M4 4l8 8M12 4l-8 8',
  clip: 'M12.5 7.5 7.6 12.4a2.9 2.9 0 0 1-4.1-4.1l5-5a1.9 1.9 0 0 1 2.7 2.7l-4.9 4.9a.9.9 0 0 1-1.3-1.3l4.3-4.3',
  link: 'M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2-2a2.6 2.6 0 0 0-3.7-3.7l-.8.8M9.2 6.8a2.6 2.6 0 0 0-3.7 0l-2 2a2.6 2.6 0 0 0 3.7 3.7l.8-.8',
  back: 'M9.5 3.5 5 8l4.5 4.5',
  sliders: 'M2.5 4.5h7M12.5 4.5h1M2.5 11.5h1M6.5 11.5h7M12.5 4.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM6.5 11.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z',
  dots: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  flag: 'M4 14V2.5M4 3h8l-2 3 2 3H4',
  sum: 'M3 3.5h10M3 8h10M3 12.5h6',
  out: 'M8 10V2.5M5 5l3-3 3 3M3 9.5v4h10v-4',
  compare: 'M3 3h3.5v10H3zM9.5 3H13v10H9.5z',
  swap: 'M3 5.5h9.5M10 3l2.5 2.5L10 8M13 10.5H3.5M6 8l-2.5 2.5L6 13',
  open: 'M6.5 3.5h-3v9h9v-3M9 3h4v4M13 3 7.5 8.5',
  list: 'M2.5 4h2M6.5 4h7M2.5 8h2M6.5 8h7M2.5 12h2M6.5 12h7',
};

export type IconName = keyof typeof paths;

export function Icon({ name, class: c }: { name: string; class?: string }) {
  return (
    <svg class={'i' + (c ? ' ' + c : '')} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name] ?? paths['other']} />
    </svg>
  );
}

// Tools by the label "tool": two letters, a name, and a colour of the rails.
const tools: Record<string, [string, string, string]> = {
  'claude-code': ['CC', 'Claude Code', 'r2'],
  codex: ['Cx', 'Codex', 'r8'],
  opencode: ['oc', 'opencode', 'r1'],
  chatgpt: ['GP', 'ChatGPT', 'r3'],
  'gemini-cli': ['Ge', 'Gemini CLI', 'r5'],
  'copilot-cli': ['Co', 'Copilot CLI', 'r4'],
  pi: ['pi', 'pi', 'r6'],
  openhands: ['OH', 'OpenHands', 'r7'],
};

export const toolName = (tool: string | undefined): string => (tool ? (tools[tool]?.[1] ?? tool) : '');

export function Badge({ tool }: { tool: string | undefined }) {
  const known = tool ? tools[tool] : undefined;
  const letters = known?.[0] ?? ((tool ?? '').replace(/[^A-Za-z0-9]/g, '').slice(0, 2) || '–');
  return (
    <span class={'badge ' + (known?.[2] ?? 'r8')} title={toolName(tool) || 'No tool is recorded'}>
      {letters}
    </span>
  );
}
