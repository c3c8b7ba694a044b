// The screens of the page. Each test that goes over all of them reads this table: a new screen is a row here.
//   path   its address, for a store that sessions.mjs filled
//   ready  what is there when it shows what it has
//   of     whether its window has the title of the context
//   then   what a person does there, if that is a state of its own
const encode = encodeURIComponent;

export const screens = [
  { name: 'Library', path: () => '/', ready: 'a.row' },
  { name: 'Library by project', path: () => '/?group=project', ready: 'a.row' },
  { name: 'Library with a condition', path: () => '/?group=none&tool=claude-code', ready: 'a.row' },
  { name: 'Conversation', path: (s) => `/c/${s.bounded}`, ready: '.turn', of: true },
  { name: 'Conversation at a message', path: (s) => `/c/${s.bounded}?m=${s.message}`, ready: '.turn', of: true },
  { name: 'Conversation of a branch', path: (s) => `/c/${s.bounded}?b=${encode(s.branch)}`, ready: '.turn', of: true },
  { name: 'Conversation without messages', path: (s) => `/c/${s.empty}`, ready: '.empty code', of: true },
  { name: 'Conversation that is not there', path: () => '/c/00000000-0000-7000-8000-000000000000', ready: '[role=alert]' },
  { name: 'Conversation, prompts only', path: (s) => `/c/${s.bounded}?d=1`, ready: '.turn', of: true },
  { name: 'Conversation, everything', path: (s) => `/c/${s.bounded}?d=3`, ready: '.turn', of: true },
  { name: 'Conversation with its files', path: (s) => `/c/${s.bounded}?nav=files`, ready: '.turn', of: true },
  { name: 'Conversation with its marks', path: (s) => `/c/${s.bounded}?nav=marks`, ready: '.nmark', of: true },
  { name: 'Conversation with its menu', path: (s) => `/c/${s.bounded}`, ready: '.turn', of: true, then: (page) => page.getByRole('button', { name: 'More' }).click() },
  { name: 'Raw part', path: (s) => `/c/${s.bounded}/m/${s.message}/0`, ready: '.line' },
  { name: 'Assemble', path: (s) => `/c/${s.bounded}/assemble?q=${encode(s.word)}`, ready: '.item' },
  { name: 'Branches', path: (s) => `/c/${s.bounded}/branches`, ready: '[role=treeitem]' },
  { name: 'Compare', path: (s) => `/c/${s.bounded}/compare?l=main&r=${encode(s.branch)}`, ready: '.turn' },
  { name: 'Export', path: (s) => `/c/${s.bounded}/export`, ready: '.outfile pre' },
  { name: 'Palette', path: () => '/', ready: 'a.row', then: (page) => pressed(page, 'Control+k', '#found [role=option]') },
  { name: 'Keys', path: () => '/', ready: 'a.row', then: (page) => pressed(page, '?', '.keylist') },
  { name: 'Settings', path: () => '/', ready: 'a.row', then: (page) => pressed(page, ',', '.settings') },
  { name: 'Search', path: () => '/search', ready: '.empty' },
  { name: 'Search with hits', path: (s) => `/search?q=${encode(s.word)}`, ready: '.hit' },
  { name: 'Search of a pattern', path: (s) => `/search?mode=exact&q=${encode(s.word)}`, ready: '.hit' },
  { name: 'Search without a hit', path: () => '/search?q=nothing+of+the+kind', ready: '.empty p' },
  { name: 'Files', path: () => '/files', ready: '.filerow' },
  { name: 'Files by how often they were touched', path: () => '/files?order=most&access=all', ready: '.paths' },
  { name: 'Files that were read', path: () => '/files?access=read', ready: '.filerow' },
  { name: 'Files with what was done to one', path: (s) => `/files?file=${encode(s.file)}`, ready: '.touch .diff' },
  { name: 'Usage', path: () => '/usage', ready: '.tab' },
  { name: 'Health', path: () => '/health', ready: '.room' },
];

async function pressed(page, key, shown) {
  await page.keyboard.press(key);
  await page.locator(shown).first().waitFor();
}

/** The screens with their addresses in a store. */
export const screensOf = (sample) => screens.map((s) => ({ ...s, path: s.path(sample) }));
