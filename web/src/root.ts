// Whose conversations the page shows: below /shared/NAME those that another user of the server shares, else one's own.

/** What each address of the page and of the API begins with. */
export const root = /^\/shared\/[^/]+/.exec(location.pathname)?.[0] ?? '';

const name = root.slice('/shared/'.length);

/** The user whose conversations these are; empty for one's own. */
export const owner = decoded(name);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The root of the page that shows what a user shares. */
export const rootOf = (user: string): string => '/shared/' + encodeURIComponent(user);
