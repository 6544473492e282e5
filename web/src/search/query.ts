/** A snippet in pieces, of which every second one matched: the server puts U+0002 and U+0003 around matches. */
export function pieces(snippet: string): { key: number; text: string; hit: boolean }[] {
  return snippet
    .replaceAll('\u0003', '\u0002')
    .split('\u0002')
    .map((text, at) => ({ key: at, text, hit: at % 2 === 1 }))
    .filter((piece) => piece.text)
}

/** How well words fit a text, best first: 3 it begins with them, 2 a word in it does, 1 it has them all somewhere, 0 not at all. */
export function fitness(text: string, query: string): number {
  const [low, words] = [text.toLowerCase(), query.toLowerCase().trim().split(/\s+/)]
  if (!words.every((word) => low.includes(word))) return 0
  if (low.startsWith(words[0] ?? '')) return 3
  return words.every((word) => ` ${low}`.includes(` ${word}`)) ? 2 : 1
}
