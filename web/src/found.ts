// Marks words in the text of the document, without a change of the document.
const longest = 2_000_000; // characters that are looked through

/** The words of a query that a text can have. */
export function wordsOf(query: string): string[] {
  return [...query.matchAll(/(-?)(?:"([^"]+)"|(\S+))/g)]
    .filter((m) => !m[1] && m[3] !== 'OR')
    .map((m) => (m[2] ?? m[3] ?? '').replace(/[*"]/g, '').toLowerCase())
    .filter((w) => w.length > 1).slice(0, 20);
}

/** Marks the words of a query, also in what comes later. Gives a function that ends it. */
export function markWords(root: HTMLElement | null, query: string): () => void {
  const words = wordsOf(query);
  if (!root || words.length === 0 || typeof Highlight === 'undefined') return () => undefined;
  let waiting = 0;
  const mark = () => {
    waiting = 0;
    const ranges: Range[] = [];
    let left = longest;
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let n = texts.nextNode(); n && left > 0; n = texts.nextNode()) {
      const text = (n.nodeValue ?? '').toLowerCase();
      left -= text.length;
      if (text.length !== (n.nodeValue ?? '').length) continue;
      for (const w of words) {
        for (let at = text.indexOf(w); at >= 0 && ranges.length < 5000; at = text.indexOf(w, at + w.length)) {
          const range = new Range();
          range.setStart(n, at);
          range.setEnd(n, at + w.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set('found', new Highlight(...ranges));
  };
  mark();
  const seen = new MutationObserver(() => {
    waiting ||= window.setTimeout(mark, 100);
  });
  seen.observe(root, { childList: true, subtree: true, characterData: true });
  return () => {
    seen.disconnect();
    clearTimeout(waiting);
    CSS.highlights.delete('found');
  };
}
